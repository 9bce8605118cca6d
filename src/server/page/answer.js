// Adds the chunks of a streamed chat completion to a message of the API's form, and measures.

// The least time that gives a speed.
const LEAST_MS = 50;

export class AnswerBuilder {
  constructor(now) {
    this.now = now;  // () => ms
    this.begin = now();
    this.first = null;       // when the first of anything came
    this.firstText = null;   // when thinking was over
    this.last = this.begin;
    this.message = {role: "assistant", content: "", meta: {}};
  }

  add(chunk) {
    const {message} = this;
    if (chunk.usage) {
      message.meta.tokens = chunk.usage.completion_tokens;
      message.meta.prompt_tokens = chunk.usage.prompt_tokens;
      message.meta.cached_tokens = chunk.usage.prompt_tokens_details?.cached_tokens ?? 0;
    }
    const choice = chunk.choices?.[0];
    if (!choice) return;
    const delta = choice.delta ?? {};
    if (delta.reasoning_content) {
      this.mark();
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content;
    }
    if (delta.content || delta.tool_calls) {
      this.mark();
      this.firstText ??= this.last;
    }
    if (delta.content) message.content += delta.content;
    for (const part of delta.tool_calls ?? []) this.addCall(part);
    if (choice.finish_reason) message.meta.finish = choice.finish_reason;
  }

  addCall(part) {
    const calls = this.message.tool_calls ??= [];
    const call = calls[part.index] ??= {id: "", type: "function", function: {name: "", arguments: ""}};
    if (part.id) call.id = part.id;
    if (part.function?.name) call.function.name += part.function.name;
    if (part.function?.arguments) call.function.arguments += part.function.arguments;
  }

  mark() {
    this.last = this.now();
    this.first ??= this.last;
  }

  // `how`: null, "stopped" by the user, or "failed".
  finish(how) {
    const {meta} = this.message;
    if (how) meta.finish = how;
    if (this.first !== null) meta.ttft_ms = this.first - this.begin;
    if (this.message.reasoning_content) meta.thinking_ms = (this.firstText ?? this.last) - this.begin;
    // In less time the number would be how late events came (the program has the same).
    if (meta.tokens > 1 && this.last - this.first >= LEAST_MS) {
      meta.tokens_per_s = (meta.tokens - 1) / ((this.last - this.first) / 1000);
    }
    // A call that was cut off cannot be answered.
    if (how && this.message.tool_calls) delete this.message.tool_calls;
    return this.message;
  }

  get isEmpty() {
    const {content, reasoning_content: reasoning, tool_calls: calls} = this.message;
    return !content && !reasoning && !calls;
  }
}

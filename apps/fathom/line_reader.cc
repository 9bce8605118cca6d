#include "line_reader.h"

#include <histedit.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cwchar>

#include "interrupt.h"

namespace fathom::app {

struct LineReader::Editor {
  EditLine* edit = nullptr;
  History* history = nullptr;
  std::string prompt;
  bool was_empty = false;  // at ctrl-C

  static char* show_prompt(EditLine* edit) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    return static_cast<Editor*>(self)->prompt.data();
  }

  // libedit's own reader tries again after a signal; this one gives up, so that ctrl-C ends the
  // line.
  static int read_character(EditLine* edit, wchar_t* out) {
    void* self = nullptr;
    el_get(edit, EL_CLIENTDATA, &self);
    std::mbstate_t state{};
    while (true) {
      char byte = 0;
      const ssize_t got = wait_readable(STDIN_FILENO) ? ::read(STDIN_FILENO, &byte, 1) : -1;
      if (got < 0 && errno == EINTR && !interrupted()) continue;  // the window was resized
      if (got <= 0) {
        const LineInfo* line = el_line(edit);
        static_cast<Editor*>(self)->was_empty = line->lastchar == line->buffer;
        return got == 0 ? 0 : -1;
      }
      const size_t length = std::mbrtowc(out, &byte, 1, &state);
      if (length == static_cast<size_t>(-2)) continue;  // within a character
      if (length == static_cast<size_t>(-1)) {
        state = std::mbstate_t{};
        continue;
      }
      return 1;
    }
  }
};

LineReader::LineReader() {
  if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0) return;
  auto editor = std::make_unique<Editor>();
  editor->edit = el_init("fathom", stdin, stdout, stderr);
  editor->history = history_init();
  if (editor->edit == nullptr || editor->history == nullptr) return;
  HistEvent event;
  history(editor->history, &event, H_SETSIZE, 1000);
  history(editor->history, &event, H_SETUNIQUE, 1);
  el_set(editor->edit, EL_CLIENTDATA, editor.get());
  el_set(editor->edit, EL_PROMPT, &Editor::show_prompt);
  el_set(editor->edit, EL_EDITOR, "emacs");
  el_set(editor->edit, EL_HIST, history, editor->history);
  el_set(editor->edit, EL_SIGNAL, 0);
  el_set(editor->edit, EL_GETCFN, &Editor::read_character);
  editor_ = std::move(editor);
}

LineReader::~LineReader() {
  if (editor_ == nullptr) return;
  el_end(editor_->edit);
  history_end(editor_->history);
}

bool LineReader::is_terminal() const { return editor_ != nullptr; }

LineReader::Outcome LineReader::read(const std::string& prompt, std::string* line) {
  clear_interrupt();
  if (editor_ == nullptr) return read_plain(line);
  editor_->prompt = prompt;
  int length = 0;
  const char* text = el_gets(editor_->edit, &length);
  if (interrupted()) {
    clear_interrupt();
    std::fputs("^C\n", stdout);
    std::fflush(stdout);
    el_reset(editor_->edit);
    return editor_->was_empty ? Outcome::kInterruptEmpty : Outcome::kInterrupt;
  }
  if (text == nullptr || length <= 0) {
    std::fputs("\n", stdout);
    std::fflush(stdout);
    return Outcome::kEnd;
  }
  line->assign(text, static_cast<size_t>(length));
  if (line->back() == '\n') line->pop_back();
  if (!line->empty()) {
    HistEvent event;
    history(editor_->history, &event, H_ENTER, line->c_str());
  }
  return Outcome::kLine;
}

LineReader::Outcome LineReader::read_plain(std::string* line) {
  while (true) {
    const size_t end = buffer_.find('\n');
    if (end != std::string::npos) {
      line->assign(buffer_, 0, end);
      buffer_.erase(0, end + 1);
      return Outcome::kLine;
    }
    char chunk[4096];
    if (!wait_readable(STDIN_FILENO)) return Outcome::kInterruptEmpty;
    const ssize_t got = ::read(STDIN_FILENO, chunk, sizeof chunk);
    if (got > 0) {
      buffer_.append(chunk, static_cast<size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      if (buffer_.empty()) return Outcome::kEnd;
      line->swap(buffer_);
      buffer_.clear();
      return Outcome::kLine;
    }
  }
}

}  // namespace fathom::app

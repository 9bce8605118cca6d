# The target `xgrammar`: the C++ core of PyPI's xgrammar source distribution (Apache-2.0), without its
# Python bindings.  Only src/grammar links it.
#
# The file comes from an ordinary `pip download` with the hash in source-requirements.txt, once for all
# presets; -DFATHOM_XGRAMMAR_SDIST=FILE takes a file that is there already (offline builds).
set(fathom_xgrammar_version 0.2.8)
file(STRINGS ${CMAKE_CURRENT_LIST_DIR}/source-requirements.txt fathom_pin REGEX "^xgrammar==${fathom_xgrammar_version} ")
string(REGEX REPLACE "^.*sha256:" "" fathom_xgrammar_sha256 "${fathom_pin}")

set(FATHOM_XGRAMMAR_SDIST "" CACHE FILEPATH "xgrammar-${fathom_xgrammar_version}.tar.gz; empty: downloaded")
set(sdist "${FATHOM_XGRAMMAR_SDIST}")
if(NOT sdist)
  set(downloads ${PROJECT_SOURCE_DIR}/build/downloads)
  set(sdist ${downloads}/xgrammar-${fathom_xgrammar_version}.tar.gz)
  if(NOT EXISTS ${sdist})
    message(STATUS "Downloading xgrammar ${fathom_xgrammar_version} from PyPI")
    find_program(FATHOM_PIP_PYTHON python3 REQUIRED)
    execute_process(
      COMMAND ${FATHOM_PIP_PYTHON} -m pip download -q --disable-pip-version-check --no-deps --require-hashes
              --no-binary xgrammar -r ${CMAKE_CURRENT_LIST_DIR}/source-requirements.txt -d ${downloads}
      TIMEOUT 300 RESULT_VARIABLE failed ERROR_VARIABLE complaint)
    if(failed OR NOT EXISTS ${sdist})
      message(FATAL_ERROR "could not download xgrammar ${fathom_xgrammar_version} (${failed}): ${complaint}\n"
        "Install python3-pip, or give the file: -DFATHOM_XGRAMMAR_SDIST=FILE")
    endif()
  endif()
endif()
file(SHA256 "${sdist}" got)
if(NOT got STREQUAL fathom_xgrammar_sha256)
  message(FATAL_ERROR "${sdist} has the SHA-256 ${got}, not ${fathom_xgrammar_sha256}; "
    "delete it, or give the file of xgrammar ${fathom_xgrammar_version}")
endif()

# Replaces one piece of a source file; a version that does not have it must be looked at again.
function(fathom_patch file from to)
  file(READ ${file} text)
  string(FIND "${text}" "${from}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "${file} is not what cmake/xgrammar.cmake expects")
  endif()
  string(REPLACE "${from}" "${to}" text "${text}")
  file(WRITE ${file} "${text}")
endfunction()

set(xg ${CMAKE_BINARY_DIR}/_xgrammar/xgrammar-${fathom_xgrammar_version})
if(NOT EXISTS ${xg}/patched_12)
  file(REMOVE_RECURSE ${xg})
  file(ARCHIVE_EXTRACT INPUT "${sdist}" DESTINATION ${CMAKE_BINARY_DIR}/_xgrammar
    PATTERNS "*/cpp/*" "*/include/*" "*/3rdparty/picojson/*" "*/3rdparty/dlpack/*" "*/LICENSE" "*/NOTICE" "*/PKG-INFO")
  # Strings with a length could hold raw control characters, which JSON does not allow.
  fathom_patch(${xg}/cpp/json_schema_converter.cc
    [=[{{'"', '"'}, {'\\', '\\'}, {'\r', '\r'}, {'\n', '\n'}}, true]=]
    [=[{{0x00, 0x1f}, {'"', '"'}, {'\\', '\\'}}, true]=])
  # Keys of additional properties could spell a declared one with escapes, and so give it another type.
  fathom_patch(${xg}/cpp/json_schema_converter.cc
    [=[  choices.push_back(Sequence({ByteString("\\"), RuleRef(kBasicEscape), RuleRef(kBasicStringSub)}));
  for (const auto& [character, child] : node.children) {]=]
    [=[  for (const auto& [character, child] : node.children) {]=])
  # What follows a rule was known only if it stands within another rule.  Strings with a length are chains of
  # rules, each at the end of the one before: every token with a quote had to be tried at each mask.
  set(functor ${xg}/cpp/grammar_functor.cc)
  fathom_patch(${functor}
    [=[    if (!CanUseDerivedLookahead(rule_id)) {
      return -1;
    }
    return builder_->AddSequence(rule_lookahead_infos_[rule_id].suffix_after_first_occurrence);]=]
    [=[    // What follows a rule at the end of another is what follows that one.
    constexpr size_t kEnough = 3;
    std::vector<int32_t> follows;
    for (int steps = 0; steps < base_grammar_->NumRules() && follows.size() < kEnough; ++steps) {
      const auto& info = rule_lookahead_infos_[rule_id];
      if (rule_id == base_grammar_->GetRootRuleId() || info.is_triggered_by_dispatch ||
          info.non_last_occurrence_count + info.last_occurrence_count != 1) {
        break;
      }
      follows.insert(
          follows.end(),
          info.suffix_after_first_occurrence.begin(),
          info.suffix_after_first_occurrence.end()
      );
      rule_id = info.owner;
    }
    return follows.empty() ? -1 : builder_->AddSequence(follows);]=])
  fathom_patch(${functor}
    [=[    int non_last_occurrence_count = 0;]=]
    [=[    int non_last_occurrence_count = 0;
    int last_occurrence_count = 0;
    int32_t owner = -1;]=])
  fathom_patch(${functor}
    [=[          rule_lookahead_infos_[last_element[0]].appears_as_last_in_other_rule = true;]=]
    [=[          auto& info = rule_lookahead_infos_[last_element[0]];
          info.appears_as_last_in_other_rule = true;
          ++info.last_occurrence_count;
          info.owner = i;]=])
  fathom_patch(${functor}
    [=[            info.suffix_after_first_occurrence.assign(]=]
    [=[            info.owner = i;
            info.suffix_after_first_occurrence.assign(]=])
  # Bounds of a class beyond a byte were cut to their last byte: [\u{e000}-\u{10ffff}] had every ASCII character in
  # it where the library looks at what follows a rule, so masks of repetitions above 128 held too much.
  fathom_patch(${xg}/cpp/earley_parser.cc
    [=[    if (static_cast<uint8_t>(sub_sequence[i]) <= ch &&
        ch <= static_cast<uint8_t>(sub_sequence[i + 1])) {]=]
    [=[    if (sub_sequence[i] <= ch && ch <= sub_sequence[i + 1]) {]=])
  # Repetitions of up to 128 were written out, and twice where there may be more: each place has a mask of its own, 25 ms of the
  # compile at 129,280 words ([^\n]{1,200}: 5.5 s).  Above 16 they are counted: 0.6 s, and tokens of more than 16
  # characters are tried when a mask is needed.
  fathom_patch(${functor}
    [=[static const int64_t kUnzipThreshold = 128;]=]
    [=[static const int64_t kUnzipThreshold = 16;]=])
  # Nothing was thought to follow the root rule, not even where other rules or itself refer to it: root ::=
  # "(" root ")" | "x" allowed ")" but never a token "))".
  set(compiler ${xg}/cpp/grammar_compiler.cc)
  fathom_patch(${compiler}
    [=[  auto root_rule_id = compiled_grammar_impl->grammar->GetRootRuleId();
]=]
    [=[  const auto& grammar = compiled_grammar_impl->grammar;
  auto root_rule_id = grammar->GetRootRuleId();
  for (int32_t rule_id = 0, num_rules = grammar->NumRules(); rule_id < num_rules; ++rule_id) {
    std::unordered_set<int> states;
    grammar->per_rule_fsms[rule_id]->GetFsm().GetReachableStates(&states);
    for (int state : states) {
      for (const auto& edge : grammar->per_rule_fsms[rule_id]->GetFsm().GetFsm().GetEdges(state)) {
        const int32_t used = edge.IsRepeatRef()
                                 ? grammar->complete_fsm.GetRepeatEdgeInfo(edge.GetAuxIndex()).RuleId()
                                 : edge.IsRuleRef() ? edge.GetRefRuleId() : -1;
        if (used != -1 && used == root_rule_id) root_rule_id = -1;  // it is a rule like others
      }
    }
  }
]=])
  # What a mask depends on, for src/grammar/state_key.cc: the parser's state, and whom it asks for while a mask is
  # made (asked_for_: position in the text, rule; those before asked_for_before_).
  fathom_patch(${xg}/cpp/earley_parser.h
    [=[ protected:
  using GrammarExpr = Grammar::Impl::GrammarExpr;]=]
    [=[ public:
  using GrammarExpr = Grammar::Impl::GrammarExpr;]=])
  fathom_patch(${xg}/cpp/grammar_matcher.cc
    [=[void GrammarMatcher::Reset() { pimpl_->Reset(); }]=]
    [=[void GrammarMatcher::Reset() { pimpl_->Reset(); }

EarleyParser& parser_of(GrammarMatcher& matcher) { return *matcher.ImplPtr(); }]=])
  fathom_patch(${xg}/cpp/earley_parser.h
    [=[  Compact2DArray<std::pair<int32_t, ParserState>> rule_id_to_completable_states_;]=]
    [=[  Compact2DArray<std::pair<int32_t, ParserState>> rule_id_to_completable_states_;

  std::vector<std::pair<int32_t, int32_t>>* asked_for_ = nullptr;
  int32_t asked_for_before_ = 0;

  // Steps of the parser since someone set it to 0; a byte that takes more than max_work_ is as one that may not come,
  // and a mask that does stays incomplete: work_ then tells.
  int64_t work_ = 0, max_work_ = std::numeric_limits<int64_t>::max();
  bool throws_beyond_ = false;  // in a compile

  decltype(auto) WaitingFor(const ParserState& state) {
    work_ += rule_id_to_completable_states_[state.rule_start_pos].data_len / 8;
    if (asked_for_ != nullptr && state.rule_start_pos < asked_for_before_) {
      const std::pair<int32_t, int32_t> list(state.rule_start_pos, state.rule_id);
      if (std::find(asked_for_->begin(), asked_for_->end(), list) == asked_for_->end()) {
        asked_for_->push_back(list);
      }
    }
    return rule_id_to_completable_states_[state.rule_start_pos];
  }]=])
  fathom_patch(${xg}/cpp/earley_parser.cc
    [=[rule_id_to_completable_states_[state.rule_start_pos]]=] [=[WaitingFor(state)]=])
  # Ambiguous grammars (root ::= root root | "a") could take minutes for one token.  So work is counted (work_).
  fathom_patch(${xg}/cpp/earley_parser.h
    [=[  void Enqueue(const ParserState& state) {
]=]
    [=[  void Enqueue(const ParserState& state) {
    ++work_;
]=])
  fathom_patch(${xg}/cpp/earley_parser.cc
    [=[auto in_vec = [&](const ParserState& state_) {
]=]
    [=[auto in_vec = [&](const ParserState& state_) {
        work_ += 1 + rule_id_to_completable_states_.Back().data_len / 32;
]=])
  fathom_patch(${xg}/cpp/earley_parser.cc
    [=[  while (!tmp_process_state_queue_.empty()) {
    const auto state = std::move(tmp_process_state_queue_.front());
    tmp_process_state_queue_.pop();
]=]
    [=[  while (!tmp_process_state_queue_.empty()) {
    if (work_ > max_work_) {
      if (throws_beyond_) {
        compile_work_left() = -1;
        throw std::runtime_error("too much work");
      }
      tmp_process_state_queue_ = {};
      rule_id_to_completable_states_.PopBack(1);
      if (capture_tracking_) capture_event_history_.PopBack(1);
      if (has_char_budget_rules_) char_count_history_.pop_back();
      return false;
    }
    const auto state = std::move(tmp_process_state_queue_.front());
    tmp_process_state_queue_.pop();
]=])
  fathom_patch(${compiler}
    [=[    auto cur_adaptive_token_mask_cache = grammar_matcher.GetAdaptiveTokenMask(is_root_rule);
]=]
    [=[    auto cur_adaptive_token_mask_cache = grammar_matcher.GetAdaptiveTokenMask(is_root_rule);
    compile_work_left() -= grammar_matcher.work_;
]=])
  fathom_patch(${compiler}
    [=[        tokenizer_info_(tokenizer_info),
        rule_level_cache_(rule_level_cache) {}]=]
    [=[        tokenizer_info_(tokenizer_info),
        rule_level_cache_(rule_level_cache) {
    max_work_ = std::min(compile_work_left(), state_work_most());
    throws_beyond_ = true;
  }]=])
  fathom_patch(${xg}/cpp/earley_parser.cc
    [=[bool EarleyParser::Advance(const uint8_t ch, bool debug_print) {
]=]
    [=[int64_t& compile_work_left() {
  thread_local int64_t left = std::numeric_limits<int64_t>::max();
  return left;
}

int64_t& state_work_most() {
  thread_local int64_t most = std::numeric_limits<int64_t>::max();
  return most;
}

bool EarleyParser::Advance(const uint8_t ch, bool debug_print) {
]=])
  fathom_patch(${xg}/cpp/earley_parser.h
    [=[class EarleyParser {
]=]
    [=[// How much work the compiles of this thread may still do (EarleyParser::work_), < 0: one did more; and how much for one
// state.
int64_t& compile_work_left();
int64_t& state_work_most();

class EarleyParser {
]=])
  fathom_patch(${xg}/cpp/grammar_matcher.cc
    [=[      const auto cur_token_idx = *token_it++;
      // Check if the current token is already accepted.]=]
    [=[      if (work_ > max_work_) break;
      const auto cur_token_idx = *token_it++;
      // Check if the current token is already accepted.]=])
  file(TOUCH ${xg}/patched_12)
endif()

# A few large sources take half the time of thirty small ones.  Made by hand, because CMake's own unity
# files name absolute paths, and ccache would not know them again in another checkout.  What runs once a
# grammar is compiled without much optimization, which takes a third less time.
file(GLOB_RECURSE xg_parts RELATIVE ${CMAKE_BINARY_DIR}/_xgrammar ${xg}/cpp/*.cc)
list(FILTER xg_parts EXCLUDE REGEX "/cpp/tvm_ffi/")
list(SORT xg_parts)
set(xg_once ${xg_parts})
list(FILTER xg_once INCLUDE REGEX "/converter_ext/|_converter\\.cc|_printer\\.cc|_parser\\.cc|/structural_tag\\.cc|/testing\\.cc|/config\\.cc")
list(FILTER xg_once EXCLUDE REGEX "/earley_parser\\.cc")
list(REMOVE_ITEM xg_parts ${xg_once})
set(xg_sources)
# fathom_unite(NAME FLAG SIZE PARTS...): sources of SIZE parts each.
function(fathom_unite name flag size)
  list(LENGTH ARGN count)
  set(sources ${xg_sources})
  foreach(first RANGE 0 ${count} ${size})
    list(SUBLIST ARGN ${first} ${size} parts)
    if(parts)
      list(TRANSFORM parts REPLACE "(.+)" "#include \"\\1\"")
      list(JOIN parts "\n" text)
      set(file ${CMAKE_BINARY_DIR}/_xgrammar/${name}_${first}.cc)
      file(CONFIGURE OUTPUT ${file} CONTENT "${text}\n" @ONLY)
      set_source_files_properties(${file} PROPERTIES COMPILE_OPTIONS ${flag})
      list(APPEND sources ${file})
    endif()
  endforeach()
  set(xg_sources ${sources} PARENT_SCOPE)
endfunction()
fathom_unite(hot -O2 5 ${xg_parts})
fathom_unite(once -O1 8 ${xg_once})
add_library(xgrammar STATIC ${xg_sources})
set_target_properties(xgrammar PROPERTIES CXX_STANDARD 17 POSITION_INDEPENDENT_CODE ON)
target_compile_options(xgrammar PRIVATE -w)
# Our own log functions (src/grammar/xgrammar_log.cc): what it warns of is an error for us.
target_compile_definitions(xgrammar PUBLIC
  XGRAMMAR_ENABLE_CPPTRACE=0 XGRAMMAR_ENABLE_INTERNAL_CHECK=0 XGRAMMAR_LOG_CUSTOMIZE=1)
target_include_directories(xgrammar SYSTEM PUBLIC ${xg}/include ${xg}/cpp ${xg}/3rdparty/dlpack/include
  ${xg}/3rdparty/picojson)
target_link_libraries(xgrammar PUBLIC Threads::Threads)

#include "model/row_set.h"

#include <algorithm>

namespace fathom::model {

void RowSet::clear() {
  num_rows = 0;
  any_image = false;
  max_window = 0;
  runs.clear();
  run.clear();
  position.clear();
  first_window.clear();
  last_window.clear();
  is_image.clear();
}

int64_t first_decoder_row(const Segment& s) {
  const int64_t end = s.start + s.num_rows;
  if (end < s.decoder_start) return end;
  if (s.start < s.decoder_start) return s.decoder_floor;
  return std::max(s.start, s.decoder_floor);
}

void DraftRows::add(const Segment& segment) {
  const int64_t first = first_decoder_row(segment), last = segment.start + segment.num_rows;
  if (segment.num_rows == 0 || first >= last) return;
  from = first > end ? first : std::min(from, first);
  end = last;
}

void RowSet::add(Run r, int64_t window) {
  r.first_row = num_rows;
  runs.push_back(r);
  add_rows(r, window);
}

void RowSet::add_block(Run r, int64_t window) {
  r.first_row = num_rows;
  runs.push_back(r);
  add_rows(r, window);
  for (auto row = static_cast<size_t>(r.first_row); row < static_cast<size_t>(num_rows); ++row) {
    first_window[row] = std::max(r.window_floor, r.start - window);
    last_window[row] = r.end() - 1;
  }
  max_window = std::max(max_window, window + r.num_rows);
}

void RowSet::extend(const Run& more, int64_t window) {
  runs.back().num_rows += more.num_rows;
  runs.back().blocks = more.blocks;  // they reach further
  add_rows(more, window);
}

void RowSet::add_rows(const Run& r, int64_t window) {
  for (int64_t p = r.start; p < r.end(); ++p) {
    run.push_back(static_cast<int32_t>(runs.size()) - 1);
    position.push_back(p);
    first_window.push_back(std::max(r.window_floor, p - window + 1));
    last_window.push_back(p);
    is_image.push_back(0);
  }
  num_rows += r.num_rows;
  max_window = std::max(max_window, window);
}

void RowSet::count_visible(const ModelConfig& config) {
  for (const int32_t ratio : config.compress_ratios) {
    if (ratio > 0) visible[ratio].clear();
  }
  for (auto& [ratio, counts] : visible) {
    for (const int64_t p : position) counts.push_back((p + 1) / ratio);
  }
}

void find_groups(const RowSet& rows, int32_t ratio, GroupSet& out) {
  out.run.clear();
  out.group.clear();
  out.position.clear();
  for (size_t i = 0; i < rows.runs.size(); ++i) {
    const Run& r = rows.runs[i];
    for (int64_t g = std::max(r.start, r.pages_from) / ratio; g < r.end() / ratio; ++g) {
      out.run.push_back(static_cast<int32_t>(i));
      out.group.push_back(g);
      out.position.push_back(g * ratio);
    }
  }
}

}  // namespace fathom::model

#include "cli/output/table.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/check.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kFlexibleMin = 16;

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::string space(width > text.size() ? width - text.size() : 0, ' ');
  return align == Align::kLeft ? text + space : space + text;
}

}  // namespace

std::string shorten_middle(const std::string& text, std::size_t width) {
  if (text.size() <= width || text.size() <= 5) return text;
  const std::size_t kept = std::max<std::size_t>(width, 5) - 3;
  const std::size_t tail = kept - kept / 3;  // a key's end is more informative than its start
  return text.substr(0, kept - tail) + "..." + text.substr(text.size() - tail);
}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

void Table::print(const Console& console) const {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const auto& row : rows_) width = std::max(width, row[c].size());
    widths.push_back(width);
    total += width + (c == 0 ? 0 : kGap.size());
  }
  if (console.out_width != 0 && total > console.out_width) {
    const std::size_t excess = total - console.out_width;
    const std::size_t least = std::min(widths[0], kFlexibleMin);
    widths[0] = widths[0] > excess + least ? widths[0] - excess : least;
  }
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) text += kGap;
      std::string cell = cell_of(c);
      if (c == 0 && cell.size() > widths[0]) {  // a long key gets a line of its own
        console.out << cell << '\n';
        cell.clear();
      }
      text += padded(shorten_middle(cell, widths[c]), widths[c], columns_[c].align);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    console.out << text << '\n';
  };
  line([&](std::size_t c) -> const std::string& { return columns_[c].title; });
  for (const auto& row : rows_) line([&](std::size_t c) -> const std::string& { return row[c]; });
}

}  // namespace reprise::cli

#include "cli/output/table.hpp"

#include <algorithm>
#include <string_view>

#include "core/base/characters.hpp"
#include "core/base/check.hpp"
#include "core/base/printable.hpp"

namespace reprise::cli {
namespace {

constexpr std::string_view kGap = "  ";
constexpr std::size_t kFlexibleMin = 16;
/// Width of the first column at most, where no terminal limits it. One very long key shall not make
/// every row as wide as itself.
constexpr std::size_t kFirstMax = 120;

std::string padded(const std::string& text, std::size_t width, Align align) {
  const std::size_t characters = characters_in(text);
  const std::string space(width > characters ? width - characters : 0, ' ');
  return align == Align::kLeft ? text + space : space + text;
}

/// Appends `text` to lines of at most `width` columns, broken at spaces. A longer word is not
/// broken. Lines after the first begin with `indent` spaces.
std::string wrapped(const std::string& text, std::size_t width, std::size_t indent) {
  std::string lines;
  std::size_t column = indent;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find(' ', at), text.size());
    const std::size_t word = characters_in(std::string_view(text).substr(at, end - at));
    if (column > indent && column + 1 + word > width) {
      lines += '\n' + std::string(indent, ' ');
      column = indent;
    } else if (at != 0) {
      lines += ' ';
      ++column;
    }
    lines += text.substr(at, end - at);
    column += word;
    at = end + 1;
  }
  return lines;
}

}  // namespace

std::string shorten_middle(const std::string& text, std::size_t width) {
  const std::size_t characters = characters_in(text);
  if (characters <= width || characters <= 5) return text;
  const std::size_t kept = std::max<std::size_t>(width, 5) - 3;
  const std::size_t tail = kept - kept / 3;  // a key's end is more informative than its start
  return std::string(first_characters(text, kept - tail)) + "..." +
         std::string(last_characters(text, tail));
}

void Table::add(std::vector<std::string> cells) {
  CHECK(cells.size() == columns_.size(), cells.size(), columns_.size());
  for (auto& cell : cells) cell = printable(cell);
  rows_.push_back(std::move(cells));
}

/// Prints each row as its first cell and a line for each further cell, with the column's title.
void Table::print_facts(const Console& console) const {
  constexpr std::size_t kIndent = 2;
  std::size_t titles = 0;
  for (std::size_t c = 1; c < columns_.size(); ++c) {
    titles = std::max(titles, columns_[c].title.size());
  }
  const std::size_t begin = kIndent + (titles == 0 ? 0 : titles + kGap.size());
  for (const auto& row : rows_) {
    console.out << row[0] << '\n';
    for (std::size_t c = 1; c < columns_.size(); ++c) {
      if (row[c].empty()) continue;
      std::string title = std::string(kIndent, ' ') + columns_[c].title;
      title.resize(begin, ' ');
      console.out << title << wrapped(row[c], console.out_width, begin) << '\n';
    }
  }
}

void Table::print(const Console& console) const {
  std::vector<std::size_t> widths;
  std::size_t total = 0;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    std::size_t width = columns_[c].title.size();
    for (const auto& row : rows_) {
      const std::size_t characters = characters_in(row[c]);
      const bool apart = c == 0 && console.out_width == 0 && characters > kFirstMax;
      if (!apart) width = std::max(width, characters);
    }
    widths.push_back(width);
    total += width + (c == 0 ? 0 : kGap.size());
  }
  if (console.out_width != 0 && total > console.out_width) {
    const std::size_t excess = total - console.out_width;
    const std::size_t least = std::min(widths[0], kFlexibleMin);
    if (total - widths[0] + least > console.out_width) return print_facts(console);
    widths[0] = widths[0] > excess + least ? widths[0] - excess : least;
  }
  const auto line = [&](const auto& cell_of) {
    std::string text;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (c != 0) text += kGap;
      std::string cell = cell_of(c);
      if (c == 0 && characters_in(cell) > widths[0]) {  // a long key gets a line of its own
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

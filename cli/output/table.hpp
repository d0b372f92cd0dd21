#pragma once
// Prints a table to a terminal. If the terminal is too narrow, long cells of the first column get
// lines of their own. If that is not enough, each cell gets a line of its own. No cell is ever cut.
// In output to a file or a pipe, each row is one line, unless its first cell is longer than 120
// characters. Widths are counted in characters, not in bytes.

#include <cstdint>
#include <string>
#include <vector>

#include "cli/output/console.hpp"

namespace reprise::cli {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

/// Returns the text shortened to `width` characters, for example "model.la...weight". Keeps at
/// least 5 characters.
std::string shorten_middle(const std::string& text, std::size_t width);

class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row. It must have one cell for each column.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(const Console& console) const;

 private:
  void print_facts(const Console& console) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reprise::cli

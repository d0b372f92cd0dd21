#pragma once
// A table for a terminal. If the terminal is too narrow, long cells of the first column are
// shortened in the middle. Output to a file or a pipe is never shortened.

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
  /// Long cells of the first column may be shortened.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row. It must have one cell for each column.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(const Console& console) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reprise::cli

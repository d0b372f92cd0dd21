#pragma once
// A table for a terminal. If the terminal is too narrow, long cells of the flexible column are
// shortened in the middle; output to a file or a pipe is never shortened.

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

/// Returns "model.la...weight"; keeps at least 5 characters.
std::string shorten_middle(const std::string& text, std::size_t width);

class Table {
 public:
  /// The first column is the flexible one.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Adds a row; it has as many cells as there are columns.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(const Console& console) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reprise::cli

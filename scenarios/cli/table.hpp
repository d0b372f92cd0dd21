#pragma once
// A table for a terminal. Where the terminal is too narrow, long cells of the flexible column are
// shortened in the middle; written to a file or a pipe, nothing is.

#include <cstdint>
#include <string>
#include <vector>

#include "scenarios/cli/console.hpp"

namespace reprise::cli {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kLeft;
};

/// "model.la...weight"; at least 5 characters stay.
std::string shorten_middle(const std::string& text, std::size_t width);

class Table {
 public:
  /// The first column is the flexible one.
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as columns.
  void add(std::vector<std::string> cells);
  bool empty() const { return rows_.empty(); }
  void print(const Console& console) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace reprise::cli

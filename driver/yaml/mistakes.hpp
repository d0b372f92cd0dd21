#pragma once
// Collects the mistakes of a YAML file, so that a reader can go on after the first one, and shows
// each with the line where it is.

#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "reprise/error.hpp"

namespace reprise::driver {

struct Mistake {
  std::string file;
  int line = -1;    ///< counted from 0; -1 if the mistake has no place in the file
  int column = -1;  ///< counted from 0, in bytes
  std::string message;

  /// Returns "file:line:column", counted from 1; the file alone if the mistake has no place in it.
  std::string place() const;

  friend bool operator==(const Mistake&, const Mistake&) = default;
};

/// The error USAGE for one mistake.
class MistakeError : public Error {
 public:
  explicit MistakeError(Mistake mistake);
  const Mistake& mistake() const { return mistake_; }

 private:
  Mistake mistake_;
};

/// Leaves the reading of a value whose mistake has already been collected.
class Unread final : public std::exception {
 public:
  const char* what() const noexcept override { return "a value with a collected mistake"; }
};

/// The mistakes of one file. There are two kinds: a mistake of form can be seen in one mapping
/// alone, such as an unknown key or a value of a wrong kind. A mistake of sense concerns what
/// values mean together.
class Mistakes {
 public:
  void add_form(Mistake mistake);
  /// Adds a mistake of sense, unless senses are not judged now, or unless its place already has a
  /// mistake, from which it may follow.
  void add_sense(const Error& error, const std::string& file);

  /// Returns whether mistakes of sense are collected, and sets it. If other parts of the file are
  /// wrong, what depends on them can't be judged.
  bool judge_sense(bool judged) { return std::exchange(judges_sense_, judged); }

  bool empty() const { return all_.empty(); }
  /// Returns how often a mistake was met, including those met before: the rows of a table share
  /// the lines of their file.
  std::size_t met() const { return met_; }
  /// Returns the mistakes in the order of their places. There are at most kMistakesMax.
  std::vector<Mistake> sorted() const;

 private:
  std::vector<Mistake> all_;
  std::size_t met_ = 0;
  bool judges_sense_ = true;
};

inline constexpr std::size_t kMistakesMax = 100;

/// Returns the mistake as text of several lines: place and message, then the line of `text` with
/// the place marked below it. `text` is the content of the mistake's file; without it, the line is
/// left out.
///
///   mine.yaml:3:5: the job has the unknown key 'sead'; did you mean 'seed'?
///     3 |     sead: 7
///       |     ^
std::string shown(const Mistake& mistake, std::string_view text);

}  // namespace reprise::driver

#pragma once
// A judge's finding: a code, a message, and where the problem is.

#include <initializer_list>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "properties/ruling_code.hpp"
#include "properties/ruling_watch.hpp"
#include "reprise/error.hpp"

namespace reprise {

struct Ruling {
  RulingCode code = judged::kBitMismatch;
  std::string key;
  std::string message;
  std::optional<GlobalRank> rank;
  SourceLine line = SourceLine::here();  ///< where a judge made it

  /// Prints "WRONG_OWNER: <message> [rank 0, key ...]".
  friend std::ostream& operator<<(std::ostream& out, const Ruling& ruling);
};

/// Holds what a judge found. A ruling comes into it only past may_state().
class Rulings {
 public:
  Rulings() = default;
  Rulings(std::initializer_list<Ruling> found);

  void push_back(Ruling ruling);
  /// Add what another judge found.
  void append(const Ruling& other) { found_.push_back(other); }
  void append(const Rulings& others);

  auto begin() const { return found_.begin(); }
  auto end() const { return found_.end(); }
  bool empty() const { return found_.empty(); }
  std::size_t size() const { return found_.size(); }
  const Ruling& front() const { return found_.front(); }
  const Ruling& operator[](std::size_t i) const { return found_[i]; }
  const Ruling& at(std::size_t i) const { return found_.at(i); }

 private:
  std::vector<Ruling> found_;
};

}  // namespace reprise

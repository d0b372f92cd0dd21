#pragma once
// Lists of texts as C sees them.

#include <cstddef>
#include <string>
#include <vector>

#include "core/c/structs.hpp"

namespace reprise::c {

/// Keeps texts, and an array of pointers to them.
class Texts {
 public:
  Texts() = default;
  explicit Texts(std::vector<std::string> texts) : texts_(std::move(texts)) {
    for (const auto& text : texts_) pointers_.push_back(text.c_str());
  }
  Texts(Texts&&) = default;
  Texts& operator=(Texts&&) = default;

  const char* const* data() const { return pointers_.data(); }
  std::size_t size() const { return pointers_.size(); }

 private:
  std::vector<std::string> texts_;
  std::vector<const char*> pointers_;
};

/// Returns a text of the caller's, or `otherwise` if there is none.
inline std::string text_or(const char* text, const char* otherwise) {
  return text != nullptr ? text : otherwise;
}

/// Returns a text of the caller's. Throws USAGE if there is none.
inline std::string required(const char* text, const char* what) {
  require(text, what);
  return text;
}

}  // namespace reprise::c

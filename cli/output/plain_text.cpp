#include "cli/output/plain_text.hpp"

#include "core/base/printable.hpp"

namespace reprise::cli {

/// Forwards the first `count` characters of the waiting text.
bool PlainText::pass_on(std::size_t count) {
  const std::string text =
      printable(std::string_view(pending_).substr(0, count), LineBreaks::kKept);
  pending_.erase(0, count);
  sink_.write(text.data(), static_cast<std::streamsize>(text.size()));
  return sink_.good();
}

PlainText::int_type PlainText::overflow(int_type letter) {
  if (traits_type::eq_int_type(letter, traits_type::eof())) return traits_type::not_eof(letter);
  const char text = traits_type::to_char_type(letter);
  return xsputn(&text, 1) == 1 ? letter : traits_type::eof();
}

std::streamsize PlainText::xsputn(const char* text, std::streamsize count) {
  const std::string_view more(text, static_cast<std::size_t>(count));
  used_ = used_ || count > 0;
  const auto line_end = more.rfind('\n');
  const std::size_t lines = line_end == std::string_view::npos ? 0 : pending_.size() + line_end + 1;
  pending_ += more;
  return lines == 0 || pass_on(lines) ? count : 0;
}

int PlainText::sync() {
  const bool passed = pass_on(pending_.size());
  sink_.flush();
  return passed && sink_.good() ? 0 : -1;
}

}  // namespace reprise::cli

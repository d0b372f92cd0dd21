#include "driver/yaml/mistakes.hpp"

#include <algorithm>
#include <tuple>

namespace reprise::driver {
namespace {

constexpr std::size_t kShownBytes = 100;

/// Returns line number `line` of the text, counted from 0.
std::string_view line_of(std::string_view text, int line) {
  for (; line > 0; --line) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  std::string_view found = text.substr(0, text.find('\n'));
  if (found.ends_with('\r')) found.remove_suffix(1);
  return found;
}

bool continues_letter(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80; }

/// Returns the number of letters of UTF-8 text.
std::size_t letters_of(std::string_view text) {
  return text.size() -
         static_cast<std::size_t>(std::count_if(text.begin(), text.end(), continues_letter));
}

/// Cuts a long line to a part around `column`, between whole letters, and adjusts the column.
std::string_view around(std::string_view line, std::size_t& column) {
  if (line.size() <= kShownBytes) return line;
  std::size_t begin = column > kShownBytes / 2 ? column - kShownBytes / 2 : 0;
  while (begin < line.size() && continues_letter(line[begin])) ++begin;
  std::size_t end = std::min(line.size(), begin + kShownBytes);
  while (end < line.size() && continues_letter(line[end])) ++end;
  column = column > begin ? column - begin : 0;
  return line.substr(begin, end - begin);
}

}  // namespace

std::string Mistake::place() const {
  if (line < 0) return file;
  return file + ":" + std::to_string(line + 1) + ":" + std::to_string(column + 1);
}

MistakeError::MistakeError(Mistake mistake)
    : Error(Code::kUsage, mistake.message, {.file = mistake.place()}),
      mistake_(std::move(mistake)) {}

void Mistakes::add_form(Mistake mistake) {
  ++met_;
  if (all_.size() >= kMistakesMax) return;
  if (std::find(all_.begin(), all_.end(), mistake) != all_.end()) return;
  all_.push_back(std::move(mistake));
}

void Mistakes::add_sense(const Error& error, const std::string& file) {
  if (error.code() == Code::kInternal) throw Error(error);
  if (!judges_sense_) return;
  const auto* known = dynamic_cast<const MistakeError*>(&error);
  Mistake mistake = known != nullptr ? known->mistake() : Mistake{.file = file};
  if (known == nullptr) {
    mistake.message = error.message();
    if (!error.place().file.empty()) mistake.file = error.place().file;
  }
  const bool follows =
      mistake.line >= 0 && std::any_of(all_.begin(), all_.end(), [&mistake](const Mistake& other) {
        return std::tie(other.file, other.line, other.column) ==
               std::tie(mistake.file, mistake.line, mistake.column);
      });
  if (!follows) add_form(std::move(mistake));
}

std::vector<Mistake> Mistakes::sorted() const {
  std::vector<Mistake> mistakes = all_;
  std::stable_sort(mistakes.begin(), mistakes.end(), [](const Mistake& a, const Mistake& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  return mistakes;
}

std::string shown(const Mistake& mistake, std::string_view text) {
  std::string lines = mistake.place() + ": " + mistake.message + "\n";
  if (mistake.line < 0 || text.empty()) return lines;
  std::string_view line = line_of(text, mistake.line);
  std::size_t column = std::min(static_cast<std::size_t>(std::max(mistake.column, 0)), line.size());
  line = around(line, column);
  std::string spaced(line);
  std::replace(spaced.begin(), spaced.end(), '\t', ' ');  // so that the mark stands below its place
  const std::string number = std::to_string(mistake.line + 1);
  lines += "  " + number + " | " + spaced + "\n";
  lines += "  " + std::string(number.size(), ' ') + " | " +
           std::string(letters_of(line.substr(0, column)), ' ') + "^\n";
  return lines;
}

}  // namespace reprise::driver

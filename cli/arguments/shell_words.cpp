#include "cli/arguments/shell_words.hpp"

#include "reprise/error.hpp"

namespace reprise::cli {

std::vector<std::string> shell_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  bool begun = false;  // an empty pair of quotes is a word, too
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\\' && quote != '\'' && i + 1 < text.size()) {
      word += text[++i];
      begun = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      begun = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (begun) words.push_back(word);
      word.clear();
      begun = false;
    } else {
      word += c;
      begun = true;
    }
  }
  if (quote != 0) throw Error(Code::kUsage, "a quote is not closed: " + std::string(text));
  if (begun) words.push_back(word);
  return words;
}

}  // namespace reprise::cli

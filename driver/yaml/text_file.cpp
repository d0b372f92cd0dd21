#include "driver/yaml/text_file.hpp"

#include <fstream>
#include <sstream>

namespace reprise::driver {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

std::string tail_of(const std::filesystem::path& file) {
  constexpr std::size_t kShown = 400;
  const std::string text = text_of(file);
  return text.size() <= kShown ? text : "..." + text.substr(text.size() - kShown);
}

}  // namespace reprise::driver

#include "driver/yaml/text_file.hpp"

#include <fstream>
#include <sstream>
#include <system_error>

namespace reprise::driver {

std::string text_of(const std::filesystem::path& file) {
  std::error_code failed;
  // A pipe would wait for a writer, perhaps for ever.
  if (!std::filesystem::is_regular_file(file, failed)) return {};
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

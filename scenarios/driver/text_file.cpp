#include "scenarios/driver/text_file.hpp"

#include <fstream>
#include <sstream>

namespace reprise::driver {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

}  // namespace reprise::driver

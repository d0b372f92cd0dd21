#include "cli/options.hpp"

#include <CLI/CLI.hpp>
#include <limits>

namespace reprise::cli {

Options& Options::positional(std::string& value, const std::string& name, const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name("");
  return *this;
}

Options& Options::positional(std::vector<std::string>& values, const std::string& name,
                             const std::string& help) {
  app_.add_option(name, values, help)->required()->type_name("");
  return *this;
}

Options& Options::optional_positional(std::vector<std::string>& values, const std::string& name,
                                      const std::string& help) {
  app_.add_option(name, values, help)->type_name("");
  return *this;
}

Options& Options::choice(std::string& value, const std::string& name, const std::string& words,
                         const std::string& help) {
  app_.add_option(name, value, help)->required()->type_name(words);
  return *this;
}

Options& Options::flag(bool& value, const std::string& name, const std::string& help) {
  app_.add_flag(name, value, help);
  return *this;
}

Options& Options::text(std::string& value, const std::string& name, const std::string& what,
                       const std::string& help) {
  app_.add_option(name, value, help)->type_name(what);
  return *this;
}

Options& Options::texts(std::vector<std::string>& values, const std::string& name,
                        const std::string& what, const std::string& help) {
  app_.add_option(name, values, help)->type_name(what)->allow_extra_args(false);
  return *this;
}

Options& Options::number(std::int64_t& value, const std::string& name, std::int64_t least,
                         const std::string& help) {
  app_.add_option(name, value, help)
      ->check(CLI::Range(least, std::numeric_limits<std::int64_t>::max(), "INT"))
      ->type_name("N");
  return *this;
}

}  // namespace reprise::cli

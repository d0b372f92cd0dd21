#pragma once
// Declares the arguments of a verb. The values are members of the verb, filled before it runs.

#include <cstdint>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace reprise::cli {

class Options {
 public:
  explicit Options(CLI::App& app) : app_(app) {}

  /// Declares a required argument without a dash; `name` in capitals, as in the help.
  Options& positional(std::string& value, const std::string& name, const std::string& help);
  /// Declares one or more such arguments.
  Options& positional(std::vector<std::string>& values, const std::string& name,
                      const std::string& help);
  /// Declares any number of them; if none are given, `values` keeps its content.
  Options& optional_positional(std::vector<std::string>& values, const std::string& name,
                               const std::string& help);
  /// Declares a flag; `name` is "--json" or "-q,--quiet".
  Options& flag(bool& value, const std::string& name, const std::string& help);
  /// Declares an option with a value, which the help shows as `what`: "REGEX".
  Options& text(std::string& value, const std::string& name, const std::string& what,
                const std::string& help);
  /// Declares a repeatable option with a value.
  Options& texts(std::vector<std::string>& values, const std::string& name, const std::string& what,
                 const std::string& help);
  /// Declares an option with an integer of at least `least`.
  Options& number(std::int64_t& value, const std::string& name, std::int64_t least,
                  const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace reprise::cli

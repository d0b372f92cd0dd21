#pragma once
// How a verb declares its arguments. The values live in the verb and are filled before it runs.

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

  /// A required argument without a dash; `name` in capitals, as in the help.
  Options& positional(std::string& value, const std::string& name, const std::string& help);
  /// One or more of them.
  Options& positional(std::vector<std::string>& values, const std::string& name,
                      const std::string& help);
  /// Any number of them; what `values` holds already is taken where none are given.
  Options& optional_positional(std::vector<std::string>& values, const std::string& name,
                               const std::string& help);
  /// `name` is "--json", or "-q,--quiet".
  Options& flag(bool& value, const std::string& name, const std::string& help);
  /// An option with a value, shown as `what`: "REGEX".
  Options& text(std::string& value, const std::string& name, const std::string& what,
                const std::string& help);
  /// The same, repeatable.
  Options& texts(std::vector<std::string>& values, const std::string& name, const std::string& what,
                 const std::string& help);
  /// An integer of at least `least`.
  Options& number(std::int64_t& value, const std::string& name, std::int64_t least,
                  const std::string& help);

 private:
  CLI::App& app_;
};

}  // namespace reprise::cli

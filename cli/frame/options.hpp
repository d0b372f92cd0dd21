#pragma once
// Declares the arguments of a verb. The values are stored in members of the verb before it runs.

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

  /// Declares a required positional argument. `name` is written in capitals, as in the help.
  Options& positional(std::string& value, const std::string& name, const std::string& help);
  /// Declares a positional argument that must be given at least once.
  Options& positional(std::vector<std::string>& values, const std::string& name,
                      const std::string& help);
  /// Declares a positional argument that may be given any number of times. If it is not given,
  /// `values` does not change.
  Options& optional_positional(std::vector<std::string>& values, const std::string& name,
                               const std::string& help);
  /// Declares a required positional argument whose values are few words, written as "first|drop".
  /// The verb itself must refuse other words.
  Options& choice(std::string& value, const std::string& name, const std::string& words,
                  const std::string& help);
  /// Declares a flag. `name` is, for example, "--json" or "-q,--quiet".
  Options& flag(bool& value, const std::string& name, const std::string& help);
  /// Declares an option with a value. The help shows the value as `what`, for example "REGEX".
  Options& text(std::string& value, const std::string& name, const std::string& what,
                const std::string& help);
  /// Declares an option that takes a value and may be repeated.
  Options& texts(std::vector<std::string>& values, const std::string& name, const std::string& what,
                 const std::string& help);
  /// Declares an option whose value is an integer of at least `least`, in decimal. A number that
  /// does not fit is refused as any other wrong word is.
  Options& number(std::int64_t& value, const std::string& name, std::int64_t least,
                  const std::string& help);
  /// Declares --jobs of a verb that reads files: on how many threads, from 1 to 1,024. It is the
  /// number of processors if it is not given.
  Options& jobs(int& threads);

 private:
  CLI::App& app_;
};

}  // namespace reprise::cli

#pragma once
// Writes completion scripts for shells from a parser's own declarations, so that they name exactly
// the verbs and options that the program has.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace CLI {
class App;
}

namespace reprise::cli {

enum class Shell : std::uint8_t { kBash, kZsh, kFish };
/// Returns the shell of that name ("bash", "zsh", "fish"); nothing for other names.
std::optional<Shell> shell_named(std::string_view name);

/// Returns a script that completes verbs, the options of each verb, and their values: choices such
/// as "sim|mpi", directories for DIR, files for everything else that is a path. Internal verbs are
/// left out.
std::string completion_script(Shell shell, const CLI::App& program);

}  // namespace reprise::cli

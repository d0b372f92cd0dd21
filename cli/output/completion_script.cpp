#include "cli/output/completion_script.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <vector>

#include "core/base/print.hpp"
#include "core/base/shell_word.hpp"

namespace reprise::cli {
namespace {

enum class Completed : std::uint8_t { kNothing, kFiles, kDirectories, kChoices };

/// The words that may stand in one place of the command line.
struct Expected {
  Completed completed = Completed::kNothing;
  std::vector<std::string> choices = {};
};

struct OptionWords {
  std::vector<std::string> names;  ///< with their dashes
  std::string help;
  bool has_value = false;
  std::string value;  ///< "DIR", "REGEX", ...
  Expected expected;
};

struct VerbWords {
  std::string name;
  std::string summary;
  std::vector<OptionWords> options;
  Expected positional;
};

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Derives what to complete from how the help describes a value: "DIR", "FILE", "sim|mpi".
Expected expected_of(const std::string& value) {
  if (value == "DIR") return {Completed::kDirectories};
  if (value.find("FILE") != std::string::npos || value == "PATH" || value == "CKPT") {
    return {Completed::kFiles};
  }
  if (value.find('|') != std::string::npos) return {Completed::kChoices, split(value, '|')};
  return {};
}

OptionWords words_of(const CLI::Option& option) {
  OptionWords words{.help = option.get_description()};
  for (const auto& name : option.get_snames()) words.names.push_back("-" + name);
  for (const auto& name : option.get_lnames()) words.names.push_back("--" + name);
  words.has_value = option.get_items_expected_max() > 0;
  words.value = option.get_type_name();
  if (words.has_value) words.expected = expected_of(words.value);
  return words;
}

VerbWords words_of(const CLI::App& verb) {
  VerbWords words{.name = verb.get_name(), .summary = verb.get_description()};
  for (const CLI::Option* option : verb.get_options()) {
    if (!option->get_positional()) {
      words.options.push_back(words_of(*option));
    } else if (words.positional.completed != Completed::kFiles) {
      const std::string value = option->get_type_name();
      // A value without a type of its own is a path: a checkpoint, a report, a scenario.
      words.positional = value.empty() ? Expected{Completed::kFiles} : expected_of(value);
    }
  }
  return words;
}

/// Adds the options of a verb's subject, and its name as a word that may follow the verb.
void add_subject(const CLI::App& subject, VerbWords& words) {
  for (auto& option : words_of(subject).options) {
    const auto same = [&option](const auto& known) { return known.names == option.names; };
    if (std::ranges::none_of(words.options, same)) words.options.push_back(std::move(option));
  }
  words.positional.completed = Completed::kChoices;
  words.positional.choices.push_back(subject.get_name());
}

std::vector<VerbWords> verbs_of(const CLI::App& program) {
  std::vector<VerbWords> verbs;
  const auto visible = [](const CLI::App* app) { return !app->get_group().empty(); };
  for (const CLI::App* verb : program.get_subcommands(visible)) {
    verbs.push_back(words_of(*verb));
    for (const auto* subject : verb->get_subcommands(visible)) add_subject(*subject, verbs.back());
  }
  return verbs;
}

std::vector<std::string> names_of(const std::vector<OptionWords>& options) {
  std::vector<std::string> names;
  for (const auto& option : options) {
    names.insert(names.end(), option.names.begin(), option.names.end());
  }
  return names;
}

// bash

std::string bash_reply(const Expected& expected) {
  const auto reply = [](const std::string& what) {
    return "mapfile -t COMPREPLY < <(compgen " + what + " -- \"$cur\")";
  };
  switch (expected.completed) {
    case Completed::kFiles:
      return reply("-f");
    case Completed::kDirectories:
      return reply("-d");
    case Completed::kChoices:
      return reply("-W " + shell_word(join(expected.choices, " ")));
    case Completed::kNothing:
      break;
  }
  return ":";
}

std::string bash_words(const std::vector<std::string>& words) {
  return bash_reply({Completed::kChoices, words});
}

std::string bash_script(const std::vector<VerbWords>& verbs, const VerbWords& program) {
  std::vector<std::string> first = names_of(program.options);
  for (const auto& verb : verbs) first.push_back(verb.name);
  std::string values;
  std::string options;
  std::string paths;
  for (const auto& verb : verbs) {
    for (const auto& option : verb.options) {
      if (!option.has_value) continue;
      std::vector<std::string> cases;
      for (const auto& name : option.names) cases.push_back(verb.name + ":" + name);
      values +=
          fmt::format("    {}) {}; return ;;\n", join(cases, "|"), bash_reply(option.expected));
    }
    options += fmt::format("      {}) {} ;;\n", verb.name, bash_words(names_of(verb.options)));
    paths += fmt::format("    {}) {} ;;\n", verb.name, bash_reply(verb.positional));
  }
  return fmt::format(R"(# Completion of reprise for bash: source <(reprise completion bash)
_reprise() {{
  local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD-1]}} verb= i
  if [[ $cur == = ]]; then cur=; fi
  if [[ $prev == = ]]; then prev=${{COMP_WORDS[COMP_CWORD-2]}}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then verb=${{COMP_WORDS[i]}}; break; fi
  done
  COMPREPLY=()
  if [[ -z $verb ]]; then
    {}
    return
  fi
  case $verb:$prev in
{}  esac
  if [[ $cur == -* ]]; then
    case $verb in
{}    esac
    return
  fi
  case $verb in
{}  esac
}}
complete -o filenames -F _reprise reprise
)",
                     bash_words(first), values, options, paths);
}

// zsh

/// Escapes text for a specification of _arguments and _describe.
std::string zsh_text(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::string zsh_action(const Expected& expected) {
  switch (expected.completed) {
    case Completed::kFiles:
      return "_files";
    case Completed::kDirectories:
      return "_files -/";
    case Completed::kChoices:
      return "(" + join(expected.choices, " ") + ")";
    case Completed::kNothing:
      break;
  }
  return " ";
}

std::string zsh_script(const std::vector<VerbWords>& verbs) {
  std::string summaries;
  std::string cases;
  for (const auto& verb : verbs) {
    summaries += "    " + shell_word(zsh_text(verb.name) + ":" + zsh_text(verb.summary)) + "\n";
    cases += fmt::format("    {})\n      _arguments", verb.name);
    for (const auto& option : verb.options) {
      for (const auto& name : option.names) {
        std::string spec = "*" + name;
        if (option.has_value && name.starts_with("--")) spec += "=";
        spec += "[" + zsh_text(option.help) + "]";
        if (option.has_value) {
          spec += ":" + zsh_text(option.value) + ":" + zsh_action(option.expected);
        }
        cases += " \\\n        " + shell_word(spec);
      }
    }
    if (verb.positional.completed != Completed::kNothing) {
      cases += " \\\n        " + shell_word("*:path:" + zsh_action(verb.positional));
    }
    cases += " ;;\n";
  }
  return fmt::format(R"(#compdef reprise
# Completion of reprise for zsh: source <(reprise completion zsh), or as _reprise in a folder of
# $fpath
_reprise() {{
  local -a verbs
  verbs=(
{}  )
  if (( CURRENT == 2 )); then
    _describe verb verbs
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
if [[ $funcstack[1] == _reprise ]]; then _reprise "$@"; else compdef _reprise reprise; fi
)",
                     summaries, cases);
}

// fish

std::string fish_values(const Expected& expected) {
  switch (expected.completed) {
    case Completed::kFiles:
      return " -r -F";
    case Completed::kDirectories:
      return " -x -a '(__fish_complete_directories)'";
    case Completed::kChoices:
      return " -x -a " + shell_word(join(expected.choices, " "));
    case Completed::kNothing:
      break;
  }
  return " -x";
}

/// Quotes text for fish, which has escapes within single quotes.
std::string fish_quotes(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string fish_option(const VerbWords& verb, const OptionWords& option) {
  std::string line = fmt::format("complete -c reprise -n '__reprise_verb {}'", verb.name);
  for (const auto& name : option.names) {
    line += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
  }
  if (option.has_value) line += fish_values(option.expected);
  return line + " -d " + fish_quotes(option.help) + "\n";
}

std::string fish_script(const std::vector<VerbWords>& verbs) {
  std::string script =
      "# Completion of reprise for fish: reprise completion fish | source\n"
      "function __reprise_verb\n"
      "  set -l words (commandline -opc)\n"
      "  test \"$words[2]\" = \"$argv[1]\"\n"
      "end\n"
      "complete -c reprise -f\n";
  for (const auto& verb : verbs) {
    script += fmt::format("complete -c reprise -n __fish_use_subcommand -a {} -d {}\n", verb.name,
                          fish_quotes(verb.summary));
    for (const auto& option : verb.options) script += fish_option(verb, option);
    const std::string values =
        verb.positional.completed == Completed::kFiles ? " -F" : fish_values(verb.positional);
    if (verb.positional.completed == Completed::kNothing) continue;
    script += fmt::format("complete -c reprise -n '__reprise_verb {}'{}\n", verb.name, values);
  }
  return script;
}

}  // namespace

std::optional<Shell> shell_named(std::string_view name) {
  if (name == "bash") return Shell::kBash;
  if (name == "zsh") return Shell::kZsh;
  if (name == "fish") return Shell::kFish;
  return std::nullopt;
}

std::string completion_script(Shell shell, const CLI::App& program) {
  const std::vector<VerbWords> verbs = verbs_of(program);
  switch (shell) {
    case Shell::kBash:
      return bash_script(verbs, words_of(program));
    case Shell::kZsh:
      return zsh_script(verbs);
    case Shell::kFish:
      break;
  }
  return fish_script(verbs);
}

}  // namespace reprise::cli

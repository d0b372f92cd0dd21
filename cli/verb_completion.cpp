#include <CLI/CLI.hpp>

#include "cli/frame/verb.hpp"
#include "cli/output/completion_script.hpp"
#include "cli/program.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

class CompletionVerb final : public Verb {
 public:
  std::string_view name() const override { return "completion"; }
  std::string_view summary() const override {
    return "Print a script that completes verbs and options in a shell";
  }
  std::string_view examples() const override {
    return "  source <(reprise completion bash)                     in ~/.bashrc\n"
           "  source <(reprise completion zsh)                      in ~/.zshrc, after compinit\n"
           "  reprise completion fish > ~/.config/fish/completions/reprise.fish\n";
  }
  void declare(Options& options) override {
    options.choice(shell_, "SHELL", "bash|zsh|fish", "the shell");
  }

  ExitCode run(const Console& console) override {
    const auto shell = shell_named(shell_);
    if (!shell) {
      throw Error(Code::kUsage, "SHELL is bash, zsh or fish, not '" + shell_ + "'");
    }
    const Verbs verbs = all_verbs();
    console.out << completion_script(*shell, *parser_of(verbs));
    return ExitCode::kPass;
  }

 private:
  std::string shell_;
};

}  // namespace

std::unique_ptr<Verb> make_completion() { return std::make_unique<CompletionVerb>(); }

}  // namespace reprise::cli

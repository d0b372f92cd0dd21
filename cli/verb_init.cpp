#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/frame/verb.hpp"
#include "cli/output/text_output.hpp"
#include "core/base/shell_word.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {

// Files of trainers/plain, which the build puts into the program (cmake/embedded_files.cmake).
extern const std::string_view kPlainProgram;  // train.py
extern const std::string_view kPlainTrainer;  // trainer.yaml

namespace {

namespace fs = std::filesystem;

constexpr const char* kScenario =
    "proves: My job continues from a checkpoint of two ranks, on two ranks and on four.\n"
    "each: {load: [dp2, dp4]}\n"
    "trainer: {name: mine, layout: {dp: 2}}\n"
    "steps:\n"
    "  - train: 2\n"
    "  - save\n"
    "  - restart: {layout: $load}\n"
    "  - train: 2\n"
    "expect: {loaded_step: 2, max_delta: 0}\n";

/// Returns trainers/plain/trainer.yaml under the name of the user's trainer.
std::string trainer_file() {
  return "name: mine\nabout: my training script\n" +
         std::string(kPlainTrainer.substr(kPlainTrainer.find("command:")));
}

class InitVerb final : public Verb {
 public:
  std::string_view name() const override { return "init"; }
  std::string_view summary() const override {
    return "Write a training script that is a trainer, and a scenario, to start from";
  }
  std::string_view examples() const override {
    return "  reprise init                  trainers/mine and scenarios/mine.yaml, here\n"
           "  reprise init judged           in the folder judged\n";
  }
  void declare(Options& options) override {
    options.optional_positional(folders_, "DIR", "where to write; default: here");
  }

  ExitCode run(const Console& console) override {
    if (folders_.size() > 1) throw Error(Code::kUsage, "init writes into one DIR");
    const fs::path root = folders_.empty() ? "." : folders_.front();
    const std::vector<std::pair<fs::path, std::string>> files = {
        {root / "trainers/mine/trainer.yaml", trainer_file()},
        {root / "trainers/mine/train.py", std::string(kPlainProgram)},
        {root / "scenarios/mine.yaml", kScenario}};
    for (const auto& [path, text] : files) {
      if (fs::exists(fs::symlink_status(path))) {
        throw Error(Code::kUsage, "is there already; nothing was written",
                    {.file = path.lexically_normal().string()});
      }
    }
    for (const auto& [path, text] : files) {
      create_folder(path.parent_path());
      write_text(path.string(), text, "the file");
      console.out << path.lexically_normal().string() << '\n';
    }
    console.out << fmt::format(
        "\nRun it, with a Python that has torch:\n\n"
        "    reprise run {} --lane program --python \"$(which python3)\"\n\n"
        "It passes. Then put your own training into train.py (docs/trainers.md).\n",
        shell_word((root / "scenarios").lexically_normal().string()));
    return ExitCode::kPass;
  }

 private:
  static void create_folder(const fs::path& folder) {
    std::error_code failed;
    fs::create_directories(folder, failed);
    if (failed) throw Error(Code::kIo, failed.message(), {.file = folder.string()});
  }

  std::vector<std::string> folders_;
};

}  // namespace

std::unique_ptr<Verb> make_init() { return std::make_unique<InitVerb>(); }

}  // namespace reprise::cli

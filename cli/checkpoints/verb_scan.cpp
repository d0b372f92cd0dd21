#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "cli/arguments/checkpoint_argument.hpp"
#include "cli/frame/survey_verb.hpp"
#include "cli/output/json_text.hpp"
#include "core/base/natural_order.hpp"
#include "core/base/print.hpp"
#include "core/base/printable.hpp"
#include "core/scan/tree_scan.hpp"

namespace reprise::cli {
namespace {

using pickle::Standing;

class ScanVerb final : public SurveyVerb {
 public:
  std::string_view name() const override { return "scan"; }
  std::string_view summary() const override {
    return "List what loading a pickle would import, without loading it";
  }
  std::string_view examples() const override {
    return "  reprise scan model.pt                           names beyond those that checkpoints "
           "need\n"
           "  reprise scan runs/llm/iter_0000100              each file below a directory\n"
           "  reprise scan --allow my.package.Config model.pt\n"
           "  reprise scan --names model.pt                   all names, with where they are\n"
           "  reprise scan --json model.pt | jq -r '.files[].names[].name'\n"
           "Names that checkpoints of torch and Megatron need are known: they only make values. "
           "Names\n"
           "that run code, such as os.system, are refused, and --allow does not change that. "
           "Exits with\n"
           "0 if all names are known or allowed, 1 if one is not, 2 if a file can't be read, and "
           "3 if\n"
           "something could not be looked at, or if there is no pickle to look at.\n";
  }
  void declare(Options& options) override {
    options.positional(paths_, "FILE", "file or directory, of any program")
        .texts(allowed_, "--allow", "NAME",
               "also accept this name, such as my.package.Config; what it does is up to you")
        .flag(names_, "--names", "also list the names that are known or allowed");
    declare_survey(options);
  }

  ExitCode run(const Console& console) override {
    require_allowable();
    ExitCode worst = ExitCode::kPass;
    nlohmann::json documents = nlohmann::json::array();
    for (const std::string& path : paths_) {
      const StoredPath stored = stored_path(path);
      TreeScan tree = survey(console, [&](const SurveyPorts& ports) {
        return scan_tree(*stored.store, stored.path, ports);
      });
      std::ranges::stable_sort(tree.files, [](const ScannedFile& a, const ScannedFile& b) {
        return in_natural_order(a.file, b.file);
      });
      const ExitCode code = exit_code_of(tree);
      worst = worse_of(worst, code);
      if (json()) {
        add_json(tree, documents);
      } else {
        print(path, tree, code, console);
      }
    }
    if (json())
      console.out << json_text({{"files", documents}, {"clean", worst == ExitCode::kPass}});
    return worst;
  }

 private:
  /// Refuses names that can't be allowed, so that nobody relies on them.
  void require_allowable() const {
    for (const std::string& name : allowed_) {
      const auto dot = name.rfind('.');
      if (dot == std::string::npos || dot == 0 || dot + 1 == name.size()) {
        throw Error(Code::kUsage, "--allow " + name + ": a name is MODULE.NAME");
      }
      if (pickle::always_refused(std::string_view(name).substr(0, dot),
                                 std::string_view(name).substr(dot + 1))) {
        throw Error(Code::kUsage, "--allow " + name + ": a name that runs code is never allowed");
      }
    }
  }

  bool accepts(const ScannedName& name) const {
    if (name.standing != Standing::kUnknown) return name.standing == Standing::kKnown;
    return std::ranges::find(allowed_, name.name) != allowed_.end();
  }

  /// True if the file should have had a pickle and has none.
  static bool lacks_pickle(const ScannedFile& file) {
    return file.scan.kind.empty() && is_name_of_pickles(file.file);
  }
  static bool is_looked_at(const ScannedFile& file) {
    return !file.unread && !file.scan.kind.empty() && file.scan.kind != "empty";
  }

  ExitCode exit_code_of(const TreeScan& tree) const {
    ExitCode worst = tree.not_looked_at.empty() && std::ranges::any_of(tree.files, is_looked_at)
                         ? ExitCode::kPass
                         : ExitCode::kInconclusive;
    for (const ScannedFile& file : tree.files) {
      const bool clean = std::ranges::all_of(
          file.scan.names, [&](const ScannedName& name) { return accepts(name); });
      const bool whole = file.scan.unscanned.empty() && !lacks_pickle(file);
      worst = worse_of(worst, file.unread ? ExitCode::kUnusable
                              : !clean    ? ExitCode::kFail
                              : whole     ? ExitCode::kPass
                                          : ExitCode::kInconclusive);
    }
    return worst;
  }

  static std::string place(const std::string& record, std::uint64_t offset) {
    return (record.empty() ? "" : printable(record) + ", ") + "offset " + std::to_string(offset);
  }

  void print(const std::string& path, const TreeScan& tree, ExitCode code,
             const Console& console) const {
    std::uint64_t pickles = 0;
    std::set<std::string> names;
    std::vector<std::string> others;
    for (const ScannedFile& file : tree.files) {
      print_file(file, console);
      pickles += file.scan.pickles;
      for (const ScannedName& name : file.scan.names) names.insert(name.name);
      if (!file.unread && !is_looked_at(file)) others.push_back(printable(file.file));
    }
    for (const std::string& link : tree.not_looked_at) {
      console.out << printable(link)
                  << ": not looked at: a link to a directory, or nested deeply\n";
    }
    const std::string_view verdict = code == ExitCode::kPass   ? "clean"
                                     : code == ExitCode::kFail ? "not clean"
                                                               : "not known to be clean";
    const std::uint64_t looked_at = tree.files.size() - others.size();
    console.out << fmt::format("{}: {}: {} looked at, {}, {}", printable(path), verdict,
                               counted(looked_at, "file"), counted(pickles, "pickle"),
                               counted(names.size(), "name"));
    if (!others.empty()) {
      console.out << fmt::format("; no pickle in {}: {}", counted(others.size(), "file"),
                                 join_first(others, 3));
    }
    console.out << '\n';
  }

  void print_file(const ScannedFile& file, const Console& console) const {
    const std::string shown = printable(file.file);
    if (file.unread) console.err << "reprise scan: " << file.unread->what() << '\n';
    for (const ScannedName& name : file.scan.names) {
      const bool accepted = accepts(name);
      if (accepted && !names_) continue;
      const std::string_view standing = accepted && name.standing == Standing::kUnknown
                                            ? "allowed"
                                            : pickle::name_of(name.standing);
      console.out << fmt::format("{}: {}: {}: {}{}\n", shown, place(name.record, name.offset),
                                 printable(name.name), standing, accepted ? "" : ": " + name.why);
    }
    for (const Unscanned& part : file.scan.unscanned) {
      console.out << fmt::format("{}: {}: not looked at: {}\n", shown,
                                 place(part.record, part.offset), printable(part.why));
    }
    if (!file.unread && lacks_pickle(file)) {
      console.out << shown
                  << ": by its name it should be a pickle or an archive of torch.save, and "
                     "it is neither\n";
    }
  }

  void add_json(const TreeScan& tree, nlohmann::json& documents) const {
    const auto text = [](const std::string& value) {
      return value.empty() ? nlohmann::json(nullptr) : nlohmann::json(value);
    };
    for (const ScannedFile& file : tree.files) {
      nlohmann::json names = nlohmann::json::array();
      for (const ScannedName& name : file.scan.names) {
        names.push_back({{"name", name.name},
                         {"standing", pickle::name_of(name.standing)},
                         {"accepted", accepts(name)},
                         {"why", text(name.why)},
                         {"record", text(name.record)},
                         {"offset", name.offset},
                         {"pickles", name.pickles}});
      }
      nlohmann::json unscanned = nlohmann::json::array();
      for (const Unscanned& part : file.scan.unscanned) {
        unscanned.push_back(
            {{"why", part.why}, {"record", text(part.record)}, {"offset", part.offset}});
      }
      if (file.unread) {
        unscanned.push_back(
            {{"why", file.unread->message()}, {"record", nullptr}, {"offset", nullptr}});
      }
      documents.push_back({{"file", file.file},
                           {"kind", text(file.scan.kind)},
                           {"names", std::move(names)},
                           {"not_looked_at", std::move(unscanned)},
                           {"pickles", file.scan.pickles}});
    }
    for (const std::string& link : tree.not_looked_at) {
      documents.push_back({{"file", link},
                           {"kind", nullptr},
                           {"names", nlohmann::json::array()},
                           {"not_looked_at",
                            {{{"why", "a link to a directory, or nested deeply"},
                              {"record", nullptr},
                              {"offset", nullptr}}}},
                           {"pickles", 0}});
    }
  }

  std::vector<std::string> paths_;
  std::vector<std::string> allowed_;
  bool names_ = false;
};

}  // namespace

std::unique_ptr<Verb> make_scan() { return std::make_unique<ScanVerb>(); }

}  // namespace reprise::cli

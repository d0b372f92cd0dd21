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
           "1 if a name is neither known nor allowed, otherwise 2 if a file can't be read, "
           "otherwise 3\n"
           "if something could not be looked at or if there is no pickle to look at, and 0 if all "
           "is well.\n";
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
    Outcome all;
    nlohmann::json documents = nlohmann::json::array();
    for (const std::string& path : paths_) {
      TreeScan tree = scanned(path, console);
      std::ranges::stable_sort(tree.files, [](const ScannedFile& a, const ScannedFile& b) {
        return in_natural_order(a.file, b.file);
      });
      const Outcome outcome = outcome_of(tree);
      all.not_clean = all.not_clean || outcome.not_clean;
      all.unread = all.unread || outcome.unread;
      all.not_looked_at = all.not_looked_at || outcome.not_looked_at;
      all.no_pickle = all.no_pickle || outcome.no_pickle;
      if (json()) {
        add_json(tree, documents);
      } else {
        print(path, tree, outcome, console);
      }
    }
    if (json()) {
      console.out << json_text({{"files", documents}, {"clean", all.code() == ExitCode::kPass}});
    }
    return all.code();
  }

 private:
  /// Says what was found. A name that is not accepted outweighs what could not be looked at.
  struct Outcome {
    bool not_clean = false;
    bool unread = false;
    bool not_looked_at = false;
    bool no_pickle = false;

    ExitCode code() const {
      if (not_clean) return ExitCode::kFail;
      if (unread) return ExitCode::kUnusable;
      return not_looked_at || no_pickle ? ExitCode::kInconclusive : ExitCode::kPass;
    }
  };

  /// One of several paths that can't be read is in the result, and the others are scanned as well.
  TreeScan scanned(const std::string& path, const Console& console) {
    try {
      const StoredPath stored = stored_path(path);
      return survey(console, [&](const SurveyPorts& ports) {
        return scan_tree(*stored.store, stored.path, ports);
      });
    } catch (const Error& error) {
      if (paths_.size() == 1) throw;
      TreeScan tree;
      tree.files.push_back({.file = path, .scan = {}, .unread = error});
      return tree;
    }
  }

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

  static bool is_looked_at(const ScannedFile& file) {
    return !file.unread && !file.scan.kind.empty() && file.scan.kind != "empty";
  }

  Outcome outcome_of(const TreeScan& tree) const {
    Outcome outcome;
    outcome.not_looked_at = !tree.not_looked_at.empty();
    // Safetensors and arrays of numbers are known to have no pickle.
    outcome.no_pickle = std::ranges::none_of(tree.files, [](const ScannedFile& file) {
      const bool has_kind = !file.scan.kind.empty() && file.scan.kind != "empty";
      return file.scan.pickles != 0 || has_kind;
    });
    for (const ScannedFile& file : tree.files) {
      outcome.unread = outcome.unread || file.unread;
      outcome.not_looked_at = outcome.not_looked_at || !file.scan.unscanned.empty();
      outcome.not_clean =
          outcome.not_clean || !std::ranges::all_of(file.scan.names, [&](const ScannedName& name) {
            return accepts(name);
          });
    }
    return outcome;
  }

  static std::string place(const std::string& record, std::uint64_t offset) {
    return (record.empty() ? "" : printable(record) + ", ") + "offset " + std::to_string(offset);
  }

  void print(const std::string& path, const TreeScan& tree, const Outcome& outcome,
             const Console& console) const {
    std::uint64_t pickles = 0;
    std::uint64_t looked_at = 0;
    std::uint64_t unread = 0;
    std::set<std::string> names;
    std::vector<std::string> others;
    for (const ScannedFile& file : tree.files) {
      print_file(file, console);
      pickles += file.scan.pickles;
      for (const ScannedName& name : file.scan.names) names.insert(name.name);
      if (file.unread) ++unread;
      if (is_looked_at(file)) ++looked_at;
      if (!file.unread && !is_looked_at(file)) others.push_back(printable(file.file));
    }
    for (const std::string& link : tree.not_looked_at) {
      console.out << printable(link)
                  << ": not looked at: a link to a directory, or nested deeply\n";
    }
    const bool passed_over = outcome.unread || outcome.not_looked_at;
    const std::string_view verdict = outcome.not_clean   ? "not clean"
                                     : passed_over       ? "not known to be clean"
                                     : outcome.no_pickle ? "no pickle to look at"
                                                         : "clean";
    console.out << fmt::format("{}: {}: {} looked at, {}, {}", printable(path), verdict,
                               counted(looked_at, "file"), counted(pickles, "pickle"),
                               counted(names.size(), "name"));
    if (unread != 0) console.out << fmt::format("; {} could not be read", with_commas(unread));
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

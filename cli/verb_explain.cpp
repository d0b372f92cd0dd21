#include <fmt/format.h>

#include <algorithm>

#include "cli/frame/verb.hpp"
#include "cli/output/table.hpp"
#include "core/base/print.hpp"
#include "reports/code_guide.hpp"
#include "reprise/error.hpp"

namespace reprise::cli {
namespace {

const reports::CodeGuide& guide_named(const std::string& name) {
  const auto all = reports::code_guides();
  const auto found = std::ranges::find(all, std::string_view(name),
                                       [](const auto& one) { return name_of(one.code); });
  if (found != all.end()) return *found;
  std::vector<std::string> names;
  for (const reports::CodeGuide& guide : all) names.emplace_back(name_of(guide.code));
  const std::string close = closest(name, names);
  throw Error(Code::kUsage,
              fmt::format("there is no code '{}'{}", name,
                          close.empty() ? "; 'reprise explain' lists all"
                                        : fmt::format("; did you mean '{}'?", close)));
}

class ExplainVerb final : public Verb {
 public:
  std::string_view name() const override { return "explain"; }
  std::string_view summary() const override {
    return "Explain a code of an error or a verdict: its meaning, its causes and what to do";
  }
  std::string_view examples() const override {
    return "  reprise explain                      all codes with their meanings\n"
           "  reprise explain STALE_PLAN\n";
  }
  void declare(Options& options) override {
    options.optional_positional(names_, "CODE", "a code such as STALE_PLAN; default: list all");
  }

  ExitCode run(const Console& console) override {
    std::vector<const reports::CodeGuide*> guides;
    for (const std::string& name : names_) guides.push_back(&guide_named(name));
    if (names_.empty()) {
      Table table({{"code"}, {"meaning"}});
      for (const reports::CodeGuide& guide : reports::code_guides()) {
        table.add({std::string(name_of(guide.code)), std::string(guide.meaning)});
      }
      table.print(console);
    }
    for (const reports::CodeGuide* guide : guides) {
      console.out << fmt::format("{}\n  {}\n  likely causes: {}\n  what to do: {}\n\n",
                                 name_of(guide->code), guide->meaning, guide->causes,
                                 guide->action);
    }
    return ExitCode::kPass;
  }

 private:
  std::vector<std::string> names_;
};

}  // namespace

std::unique_ptr<Verb> make_explain() { return std::make_unique<ExplainVerb>(); }

}  // namespace reprise::cli

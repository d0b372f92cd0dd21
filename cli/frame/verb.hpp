#pragma once
// Defines the interface of the program's verbs. Each verb has its own file; verbs.cpp lists them.

#include <memory>
#include <string_view>
#include <vector>

#include "cli/frame/exit_code.hpp"
#include "cli/frame/options.hpp"
#include "cli/output/console.hpp"

namespace reprise::cli {

class Verb {
 public:
  virtual ~Verb() = default;
  virtual std::string_view name() const = 0;
  /// True for a subject of `reprise search`. In version 0.2 it is a hidden verb, too.
  virtual bool is_subject() const { return false; }
  /// Returns text for the help.
  virtual std::string_view summary() const = 0;
  /// Returns examples for the end of the help, as lines indented by two spaces.
  virtual std::string_view examples() const = 0;
  /// Called before the command line is read, once for each name.
  virtual void declare(Options& options) = 0;
  /// Runs the verb. Throws errors; run_program turns these into messages and exit codes.
  virtual ExitCode run(const Console& console) = 0;
};

using Verbs = std::vector<std::unique_ptr<Verb>>;

std::unique_ptr<Verb> make_run();
std::unique_ptr<Verb> make_replay();
std::unique_ptr<Verb> make_shrink();
std::unique_ptr<Verb> make_properties();
std::unique_ptr<Verb> make_explore();
std::unique_ptr<Verb> make_mutants();
std::unique_ptr<Verb> make_exhaust();
std::unique_ptr<Verb> make_inspect();
std::unique_ptr<Verb> make_verify();
std::unique_ptr<Verb> make_digest();
std::unique_ptr<Verb> make_seal();
std::unique_ptr<Verb> make_diff();
std::unique_ptr<Verb> make_reshard();
std::unique_ptr<Verb> make_export();
std::unique_ptr<Verb> make_import();
std::unique_ptr<Verb> make_maps();
std::unique_ptr<Verb> make_which();
std::unique_ptr<Verb> make_trend();
std::unique_ptr<Verb> make_match();
std::unique_ptr<Verb> make_scan();
std::unique_ptr<Verb> make_plan();
std::unique_ptr<Verb> make_gate();
std::unique_ptr<Verb> make_report();
std::unique_ptr<Verb> make_merge();
std::unique_ptr<Verb> make_compare_reports();
std::unique_ptr<Verb> make_resume_proof();
std::unique_ptr<Verb> make_watch();
std::unique_ptr<Verb> make_init();
std::unique_ptr<Verb> make_explain();
std::unique_ptr<Verb> make_completion();

/// Returns the verbs in the order in which the help lists them.
Verbs all_verbs();

}  // namespace reprise::cli

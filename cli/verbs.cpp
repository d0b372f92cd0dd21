#include "cli/frame/verb.hpp"

namespace reprise::cli {

Verbs all_verbs() {
  Verbs verbs;
  verbs.push_back(make_run());
  verbs.push_back(make_replay());
  verbs.push_back(make_shrink());
  verbs.push_back(make_properties());
  verbs.push_back(make_explore());
  verbs.push_back(make_mutants());
  verbs.push_back(make_exhaust());
  verbs.push_back(make_inspect());
  verbs.push_back(make_verify());
  verbs.push_back(make_digest());
  verbs.push_back(make_seal());
  verbs.push_back(make_diff());
  verbs.push_back(make_reshard());
  verbs.push_back(make_export());
  verbs.push_back(make_import());
  verbs.push_back(make_maps());
  verbs.push_back(make_which());
  verbs.push_back(make_trend());
  verbs.push_back(make_match());
  verbs.push_back(make_scan());
  verbs.push_back(make_plan());
  verbs.push_back(make_gate());
  verbs.push_back(make_report());
  verbs.push_back(make_merge());
  verbs.push_back(make_compare_reports());
  verbs.push_back(make_resume_proof());
  verbs.push_back(make_watch());
  verbs.push_back(make_init());
  verbs.push_back(make_explain());
  verbs.push_back(make_completion());
  return verbs;
}

}  // namespace reprise::cli

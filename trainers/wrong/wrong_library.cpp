// The C interface with defects that the harness knows by name, for trainers: a job that was made
// wrong saves and loads like the engine with that mutant.
#include <exception>
#include <iostream>
#include <string>

#include "core/api/access.hpp"
#include "core/c/handles.hpp"
#include "sim/mutants/mutants.hpp"

/// Gives an open job the defect of a mutant until the process ends. Returns 0, or 1 and prints why.
extern "C" RP_EXPORT int rp_make_wrong(rp_job* job, const char* mutant) {
  using namespace reprise;
  try {
    auto* policies = new sim::Policies;  // outlives the job and its saves, as its seams must
    sim::mutant_named(mutant).apply(*policies);
    JobAccess::state(reprise::c::own(job, "job").job)->seams = {&policies->save, &policies->load};
    return 0;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}

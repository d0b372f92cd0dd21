#include "cli/ranks/rank_verbs.hpp"
#include "core/adapters/mpi/mpi_session.hpp"
#include "core/adapters/nccl/nccl_version.hpp"
#include "driver/lanes/reprise_ranks.hpp"

namespace reprise::cli {
namespace {

class LibrariesVerb final : public Verb {
 public:
  std::string_view name() const override { return "libraries"; }
  std::string_view summary() const override {
    return "Print which program this is and the libraries that ranks communicate with";
  }
  std::string_view examples() const override { return "  reprise-ranks libraries\n"; }
  void declare(Options& /*options*/) override {}
  ExitCode run(const Console& console) override {
    console.out << driver::to_string(
        driver::RankLibraries{driver::this_program(), mpi_version(), nccl_version()});
    return ExitCode::kPass;
  }
};

}  // namespace

std::unique_ptr<Verb> make_libraries() { return std::make_unique<LibrariesVerb>(); }

Verbs rank_verbs() {
  Verbs verbs;
  verbs.push_back(make_rank());
  verbs.push_back(make_libraries());
  return verbs;
}

}  // namespace reprise::cli

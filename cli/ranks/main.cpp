// The program reprise-ranks. The launchers of the lanes mpi and gpu start it once per rank; people
// start the program reprise.
#include "cli/entry.hpp"
#include "cli/ranks/rank_verbs.hpp"

int main(int argc, char** argv) {
  return static_cast<int>(reprise::cli::run_process(argc, argv, reprise::cli::rank_verbs()));
}

#include "cli/entry.hpp"

int main(int argc, char** argv) {
  return static_cast<int>(reprise::cli::run_process(argc, argv, reprise::cli::all_verbs()));
}

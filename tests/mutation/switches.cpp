// Reads which mutant is on, and writes which sites a program evaluated.
#include "tests/mutation/switches.hpp"

#include <cstdio>
#include <cstdlib>

namespace mutation {
namespace {

constexpr std::int32_t kSitesMax = 1 << 16;
constexpr std::int32_t kVariants = 2;

Chosen read_chosen() {
  Chosen read;
  const char* text = std::getenv("REPRISE_MUTATION");
  if (text != nullptr) std::sscanf(text, "%d:%d", &read.site, &read.variant);
  return read;
}

/// What was evaluated. Written by all threads without order: each only ever sets a byte to 1.
volatile char seen[kSitesMax * kVariants];

/// Adds the evaluated mutants to the file in REPRISE_MUTATION_SEEN when the program ends.
void write_seen() {
  const char* path = std::getenv("REPRISE_MUTATION_SEEN");
  if (path == nullptr) return;
  std::FILE* file = std::fopen(path, "a");
  if (file == nullptr) return;
  for (std::int32_t at = 0; at < kSitesMax * kVariants; ++at) {
    if (seen[at] != 0) std::fprintf(file, "%d:%d\n", at / kVariants, at % kVariants);
  }
  std::fclose(file);
}

const bool at_exit =
    std::getenv("REPRISE_MUTATION_SEEN") != nullptr && std::atexit(write_seen) == 0;

}  // namespace

const Chosen chosen = read_chosen();

void note(std::int32_t site, std::int32_t variant) {
  if (site < kSitesMax) seen[site * kVariants + variant] = 1;
}

}  // namespace mutation

#pragma once
// Declares the verbs of the program reprise-ranks.

#include "cli/frame/verb.hpp"

namespace reprise::cli {

std::unique_ptr<Verb> make_rank();
std::unique_ptr<Verb> make_libraries();

Verbs rank_verbs();

}  // namespace reprise::cli

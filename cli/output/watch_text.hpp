#pragma once
// The screen of `reprise watch`: the verdict, then what did not come back, and from where.

#include <string>

#include "driver/watch/watch_judgement.hpp"

namespace reprise::cli {

/// Returns the verdict in one line, a line for each finding, what the command printed last if that
/// is the reason, and what was judged and what was not.
std::string watch_text(const driver::WatchJudgement& judgement);

}  // namespace reprise::cli

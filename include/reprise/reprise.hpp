#pragma once
// Includes all public headers of Reprise, which saves, loads and compares distributed checkpoints
// in torch_dist format.

#include "reprise/inspect.hpp"
#include "reprise/job.hpp"
#include "reprise/load.hpp"
#include "reprise/save.hpp"
#include "reprise/socket.hpp"
#include "reprise/state.hpp"

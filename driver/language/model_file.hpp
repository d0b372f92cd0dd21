#pragma once
// Reads the description of a model from a file, for planning without data:
//
//   gpt: {layers: 32, hidden: 4096, ffn: 11008, vocabulary: 128256}
//
// The file may instead list the parameters, each with its splits in order, as "<axis>/<dimension>":
//
//   parameters:
//     - {key: embedding.weight, shape: [50304, 4096], splits: [tp/0]}
//     - {key: norm.weight, shape: [4096]}

#include <string>

#include "sim/job/model/model.hpp"

namespace reprise::driver {

/// Reads the file. Throws USAGE with file and line, or NOT_FOUND.
sim::ModelSpec read_model_file(const std::string& file);
sim::ModelSpec parse_model(const std::string& text, const std::string& file);
/// Returns the built-in model of that name. If the name ends in .yaml, reads the file of that name
/// instead.
sim::ModelSpec model_of(const std::string& name_or_file);

}  // namespace reprise::driver

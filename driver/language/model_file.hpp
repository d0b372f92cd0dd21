#pragma once
// Reads a model from a file, for planning without data:
//
//   gpt: {layers: 32, hidden: 4096, ffn: 11008, vocabulary: 128256}
//
// or parameter by parameter, with "<axis>/<dimension>" for each split in order:
//
//   parameters:
//     - {key: embedding.weight, shape: [50304, 4096], splits: [tp/0]}
//     - {key: norm.weight, shape: [4096]}

#include <string>

#include "sim/job/model/model.hpp"

namespace reprise::driver {

/// Throws USAGE with file and line, or NOT_FOUND.
sim::ModelSpec read_model_file(const std::string& file);
sim::ModelSpec parse_model(const std::string& text, const std::string& file);
/// Returns a built-in model by its name, or reads the file of that name if it ends in .yaml.
sim::ModelSpec model_of(const std::string& name_or_file);

}  // namespace reprise::driver

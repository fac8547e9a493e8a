// Applies the rules of rules.h to files that were already read: no file system in here, so that
// each rule can be tested on text. Values in, values out; may be called from any thread.
#pragma once

#include <string>
#include <vector>

namespace weir::tidy {

struct File {
  std::string path;  ///< from the root, with '/'
  std::string text;
};

struct Finding {
  std::string path;
  int line = 0;  ///< from 1; 0 when the whole file or its absence is meant
  std::string rule;
  std::string message;

  friend bool operator==(const Finding&, const Finding&) = default;
};

/// `path:line: rule: message`.
std::string to_string(const Finding& finding);

/// What is wrong with a tree of files, ordered by path and line. Exceptions are taken into account;
/// one that excuses nothing, in a tree that has what it is about, is a finding.
std::vector<Finding> check_tree(const std::vector<File>& files);

}  // namespace weir::tidy

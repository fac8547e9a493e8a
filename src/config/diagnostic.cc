#include "src/config/diagnostic.h"

namespace weir::config {

std::string to_string(const Diagnostic& diagnostic) {
  std::string text = diagnostic.file;
  if (diagnostic.line > 0) {
    text += ':' + std::to_string(diagnostic.line);
    if (diagnostic.column > 0) text += ':' + std::to_string(diagnostic.column);
  }
  return text + ": " + diagnostic.message;
}

std::string to_string(const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const auto& diagnostic : diagnostics) text += to_string(diagnostic) + '\n';
  return text;
}

}  // namespace weir::config

// The tokens of node.yaml as digests, read at start and at each reload. Functions without state but
// files.
#pragma once

#include "src/base/result.h"
#include "src/config/node_config.h"
#include "src/net/bearer.h"

namespace weir::server {

/// Largest file of a token. Larger is an error.
inline constexpr std::size_t kMaxTokenFileBytes = 4 * 1024;

/// A file holds one token; blanks around it do not count. The error names member
/// and file, never a token.
Result<std::string> read_token_file(const char* field, const std::string& path);

/// All of node.yaml, as digests.
Result<net::TokenDigests> read_tokens(const config::TokenConfig& config);

}  // namespace weir::server

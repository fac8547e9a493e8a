weir_test(NAME policy_match_test LABEL unit SOURCES policy_match_test.cc
  policy_count_allocations.cc DEPS policy)
weir_test(NAME policy_reload_test LABEL unit SOURCES policy_reload_test.cc DEPS policy)
weir_test(NAME policy_spread_test LABEL unit SOURCES policy_assembly_test.cc policy_spread_test.cc DEPS policy)

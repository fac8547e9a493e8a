weir_test(NAME edge_limiter_test LABEL unit SOURCES edge_limiter_test.cc edge_failure_test.cc
  edge_memory_test.cc lease_cluster.cc DEPS edge ownership)
weir_test(NAME edge_estimate_test LABEL unit SOURCES edge_estimate_test.cc DEPS edge)
weir_test(NAME edge_window_test LABEL unit SOURCES edge_window_test.cc DEPS edge ownership)
weir_test(NAME edge_router_test LABEL unit SOURCES edge_router_test.cc DEPS edge)
weir_test(NAME edge_busiest_test LABEL unit SOURCES edge_activity_test.cc edge_busiest_test.cc
  lease_cluster.cc policy_count_allocations.cc DEPS edge ownership)

weir_test(NAME edge_limiter_test LABEL unit SOURCES edge_limiter_test.cc edge_failure_test.cc
  edge_memory_test.cc lease_cluster.cc DEPS edge ownership)

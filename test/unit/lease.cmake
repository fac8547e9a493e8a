weir_test(NAME lease_ledger_test LABEL unit SOURCES lease_ledger_test.cc lease_ledger_share_test.cc
  DEPS lease)
weir_test(NAME lease_pair_test LABEL unit SOURCES lease_pair_test.cc lease_cluster.cc
  DEPS edge ownership)
weir_test(NAME lease_holder_test LABEL unit SOURCES lease_holder_test.cc DEPS lease)
weir_test(NAME lease_sizing_test LABEL unit SOURCES lease_sizing_test.cc DEPS lease)

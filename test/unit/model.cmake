weir_test(NAME model_test LABEL unit DEPS model
  SOURCES model_check_test.cc model_ids_test.cc model_topology_test.cc model_words_test.cc
)
target_compile_definitions(model_test PRIVATE WEIR_VECTORS_DIR="${PROJECT_SOURCE_DIR}/test/vectors")

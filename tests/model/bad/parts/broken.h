static tensor broken(tensor x) {
  return relu(x) + 1;
}

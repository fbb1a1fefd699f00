/* Arrays of tensors and of scopes, by themselves and through pointers in structs: a region gets its own copy. */
#include <accel/model.h>

struct list {
  tensor *items;
  int count;
};

static tensor blend(scope s, struct list list) {
  tensor all = linear(s, list.items[0], 8);
  for (int i = 1; i < list.count; i++) all = add(all, list.items[i]);
  return all;
}

static tensor each(const scope scopes[], tensor x, int count) {
  for (int i = 0; i < count; i++) x = relu(linear(scopes[i], x, 8));
  return x;
}

/* Not a region: it gives no tensors, so it may fill the caller's array. */
static void powers(tensor *items, int count, tensor x) {
  items[0] = x;
  for (int i = 1; i < count; i++) items[i] = mul(items[i - 1], x);
}

tensor model(scope s, tensor tokens) {
  tensor items[3];
  powers(items, 3, embedding(at(s, "table"), tokens, 10, 8));
  tensor first = blend(at(s, "blend"), (struct list){items, 3});
  tensor second = blend(at(s, "blend"), (struct list){items + 1, 2});
  scope scopes[2] = {at(s, "a"), at(s, "b")};
  return mean_all(mul(each(scopes, items[2], 2), concat(2, slice(first, 2, 0, 4), slice(second, 2, 4, 4))));
}

#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_store.cuh>
extern "C" __global__ void exchange(const int* x, int* y) {
  using Load = cub::BlockLoad<int, 64, 4, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Exchange = cub::BlockExchange<int, 64, 4>;
  using Store = cub::BlockStore<int, 64, 4, cub::BLOCK_STORE_TRANSPOSE>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Exchange::TempStorage exchange;
    typename Store::TempStorage store;
  } storage;
  int items[4];
  Load(storage.load).Load(x + blockIdx.x * 256, items);
  __syncthreads();
  Exchange(storage.exchange).BlockedToStriped(items, items);
  __syncthreads();
  Store(storage.store).Store(y + blockIdx.x * 256, items);
}

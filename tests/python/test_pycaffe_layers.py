"""Layers written in Python."""

import subprocess
import threading

import numpy as np
import pytest

from pycaffe_module import caffe, net, write

import conftest

INPUT = "force_backward: true layer { name: 'in' type: 'Input' top: 'x' input_param { shape { dim: 4 dim: 3 } } }"


def layer(name, more="bottom: 'x'", module=__name__, param_str="", top="top: 'y'"):
    return (
        f"layer {{ type: 'Python' name: 'p' {more} {top} python_param {{ module: '{module}' layer: '{name}' "
        f"param_str: '{param_str}' }} }}"
    )


class Distance(caffe.Layer):
    """Half the mean squared distance, as EuclideanLoss has it."""

    def setup(self, bottom, top):
        if len(bottom) != 2:
            raise ValueError("two bottoms are needed to compute a distance")

    def reshape(self, bottom, top):
        top[0].reshape()

    def forward(self, bottom, top):
        self.difference = bottom[0].data - bottom[1].data
        top[0].data[...] = (self.difference**2).sum() / bottom[0].num / 2

    def backward(self, top, propagate_down, bottom):
        self.asked = propagate_down
        for i, sign in ((0, 1), (1, -1)):
            if propagate_down[i]:
                bottom[i].diff[...] = sign * self.difference * top[0].diff / bottom[i].num


class Slope(caffe.Layer):
    """y = w x with one trained w, which param_str initialises."""

    def setup(self, bottom, top):
        self.blobs.add_blob(1)
        self.blobs[0].data[...] = float(self.param_str)

    def reshape(self, bottom, top):
        top[0].reshape(*bottom[0].shape)

    def forward(self, bottom, top):
        top[0].data[...] = self.blobs[0].data[0] * bottom[0].data

    def backward(self, top, propagate_down, bottom):
        self.blobs[0].diff[0] += (top[0].diff * bottom[0].data).sum()
        bottom[0].diff[...] = self.blobs[0].data[0] * top[0].diff


class Late(Slope):
    def forward(self, bottom, top):
        self.blobs.add_blob(1)


class Phase(caffe.Layer):
    def setup(self, bottom, top):
        pass

    def reshape(self, bottom, top):
        top[0].reshape(2)

    def forward(self, bottom, top):
        top[0].data[...] = self.phase


class Interrupted(Phase):
    def forward(self, bottom, top):
        raise KeyboardInterrupt


class NoLayer:
    pass


def test_a_loss_in_python_trains_as_the_built_in_one(tmp_path):
    body = """layer { name: 'd' type: 'DummyData' top: 'x' top: 't'
      dummy_data_param { shape { dim: 6 dim: 4 } shape { dim: 6 dim: 2 }
      data_filler { type: 'gaussian' std: 1 } } }
    layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y'
      inner_product_param { num_output: 2 weight_filler { type: 'xavier' } } }"""
    ours = "layer { name: 'l' type: 'EuclideanLoss' bottom: 'y' bottom: 't' top: 'l' }"
    theirs = (
        "layer { name: 'l' type: 'Python' bottom: 'y' bottom: 't' top: 'l' loss_weight: 1 "
        f"python_param {{ module: '{__name__}' layer: 'Distance' }} }}"
    )
    models = []
    for i, loss in enumerate((ours, theirs)):
        net_file = write(tmp_path, f"{i}.prototxt", body + loss)
        solver = caffe.get_solver(
            write(
                tmp_path,
                f"solver{i}.prototxt",
                f"net: '{net_file}' base_lr: 0.1 lr_policy: 'fixed' momentum: 0.9 "
                "max_iter: 20 random_seed: 5 snapshot_after_train: false",
            )
        )
        solver.solve()
        models.append(solver.net.params["ip"][0].data.copy())
        if i == 1:
            assert solver.net.layers[2].asked == [True, False]
    np.testing.assert_allclose(models[1], models[0], rtol=1e-5)


def test_parameters_of_python_layers_learn_are_saved_and_shared(tmp_path):
    text = INPUT + layer("Slope", param_str="3")
    made = net(text)
    x = np.random.default_rng(1).normal(size=(4, 3)).astype(np.float32)
    assert (made.forward(x=x)["y"] == 3 * x).all()
    assert (made.backward(y=x)["x"] == 3 * x).all()
    np.testing.assert_allclose(made.params["p"][0].diff, [(x * x).sum()], rtol=1e-6)
    made.params["p"][0].data[...] = 7
    made.save(str(tmp_path / "w.caffemodel"))
    other = net(text, weights=str(tmp_path / "w.caffemodel"))
    assert other.layers[1].blobs[0].data[0] == 7 and (other.forward(x=x)["y"] == 7 * x).all()
    third = net(text)
    third.share_with(other)
    other.params["p"][0].data[...] = -1
    assert (third.forward(x=x)["y"] == -x).all()


def test_a_layer_is_the_programs_own_object():
    made = net(INPUT + layer("Slope", param_str="2"))
    mine = made.layers[1]
    assert type(mine) is Slope and made.layer_dict["p"] is mine
    assert (mine.type, mine.name, mine.param_str) == ("Python", "p", "2")
    mine.blobs[0].data[0] = 10
    assert made.forward()["y"].shape == (4, 3)


@pytest.mark.parametrize("phase", [caffe.TRAIN, caffe.TEST])
def test_the_phase_is_known(phase):
    assert (net(layer("Phase", more=""), phase).forward()["y"] == phase).all()


@pytest.mark.parametrize(
    "name, module, error, why",
    [
        ("Distance", __name__, ValueError, "two bottoms are needed"),
        ("Slope", __name__, ValueError, "could not convert string to float"),
        ("None", __name__, TypeError, "which is not there"),
        ("NoLayer", __name__, TypeError, "no subclass of caffe.Layer"),
        ("Slope", "no_such_module", ModuleNotFoundError, "no_such_module"),
    ],
)
def test_what_goes_wrong_in_setup_comes_out_as_it_is(name, module, error, why):
    with pytest.raises(error, match=why):
        net(INPUT + layer(name, module=module))
    net(INPUT + layer("Slope", param_str="1")).forward()


def test_what_goes_wrong_in_a_pass_comes_out_as_it_is():
    late = net(INPUT + layer("Late", param_str="1"))
    with pytest.raises(RuntimeError, match="works in setup"):
        late.forward()
    with pytest.raises(KeyboardInterrupt):
        net(layer("Interrupted", more="")).forward()
    with pytest.raises(AttributeError, match="backward"):
        net(INPUT + layer("Phase")).backward()


def test_layers_in_two_threads_do_not_wait_for_each_other_for_ever():
    nets = [net(INPUT + layer("Slope", param_str=str(k))) for k in (2, 3)]
    wrong = []

    def run(made, factor):
        x = np.full((4, 3), factor, np.float32)
        for _ in range(300):
            if not (made.forward(x=x)["y"] == factor * factor).all():
                wrong.append(factor)

    threads = [threading.Thread(target=run, args=(made, k)) for made, k in zip(nets, (2, 3))]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_the_executable_says_who_can_run_them(tmp_path):
    write(tmp_path, "net.prototxt", INPUT + layer("Slope", param_str="3"))
    write(tmp_path, "solver.prototxt", "net: 'net.prototxt' base_lr: 1 lr_policy: 'fixed' max_iter: 1 solver_mode: CPU")
    ended = conftest.crema("train", "--solver", "solver.prototxt", cwd=tmp_path)
    assert ended.code not in (0, 70)
    assert (
        "Python layers need Python" in ended.message
        and "import caffe" in ended.message
        and "in layer 'p'" in ended.message
    )


PROGRAM = r"""
#include <stdio.h>
#include "crema.h"
static int count(void* user, int layer) { *(int*)user += 10 + layer; return 1; }
static int make(void* user, crema_layer* layer, int64_t* instance) {
  (void)layer, *(int*)user += 1000, *instance = 0;
  return 1;
}
static int run(void* user, int64_t instance, crema_pass pass, const int* down) {
  (void)user, (void)instance, (void)pass, (void)down;
  return 1;
}
static int draw(size_t edge_size) {
  const crema_box boxes[2] = {{"one", 0xffffff}, {"two", 0xffffff}};
  const crema_edge edge = {0, 1, "on"};
  crema_graph graph = {sizeof graph, sizeof *boxes, edge_size, "title", "TB", boxes, &edge, 2, 1};
  const char* bytes; size_t size;
  return crema_draw(&graph, "svg", &bytes, &size);
}
int main(void) {
  int seen = 0, made = 0;
  crema_layer_host host = {sizeof host, &made, make, run};
  crema_net* net; crema_blob *x, *y; crema_memory *mx, *my; float *vx, *vy; double loss; int i;
  crema_set_log_level(2);
  if (crema_net_create("net.prototxt", 1, 0, NULL, 0, &net)) return 1;
  if (crema_net_blob(net, "x", &x) || crema_net_blob(net, "y", &y)) return 1;
  if (crema_blob_values(x, 0, &vx, &mx)) return 2;
  for (i = 0; i < 12; ++i) vx[i] = (float)i;
  if (crema_net_set_hook(net, CREMA_BEFORE_FORWARD, count, &seen)) return 3;
  if (crema_net_forward(net, 0, crema_net_count(net, CREMA_LAYERS, 0) - 1, &loss)) return 3;
  if (crema_blob_values(y, 0, &vy, &my)) return 3;
  crema_net_free(net), crema_blob_free(x), crema_blob_free(y);
  printf("%g %g\n", vy[0], vy[7]);
  crema_memory_free(mx), crema_memory_free(my);
  printf("%d ", crema_net_create("python.prototxt", 1, 0, NULL, 0, &net));
  puts(crema_last_error());
  if (crema_set_layer_host(&host) || crema_net_create("python.prototxt", 1, 0, NULL, 0, &net)) return 4;
  host.size = sizeof(void*);
  printf("hook %d, made %d\n%d ", seen, made, crema_set_layer_host(&host));
  puts(crema_last_error());
  printf("%d ", draw(sizeof(crema_edge)));
  printf("%d ", draw(4));
  puts(crema_last_error());
  return 0;
}"""


def test_the_header_is_c_and_c_programs_can_use_it(tmp_path):
    """A C99 program, compiled against api/crema.h: a net, a blob, a refused layer."""
    from pycaffe_module import PACKAGE

    write(
        tmp_path,
        "net.prototxt",
        INPUT + "layer { name: 'ip' type: 'InnerProduct' bottom: 'x' top: 'y' inner_product_param { num_output: 2 "
        "weight_filler { type: 'constant' value: 0.5 } } }",
    )
    write(tmp_path, "python.prototxt", layer("Slope", more=""))
    write(tmp_path, "main.c", PROGRAM)
    build = [
        *"cc -std=c99 -Wall -Wextra -pedantic -Werror main.c".split(),
        f"-I{conftest.ROOT}/api",
        f"{PACKAGE}/caffe/libcrema.so",
        f"-Wl,-rpath,{PACKAGE}/caffe",
        "-o",
        "main",
    ]
    subprocess.run(build, cwd=tmp_path, check=True, timeout=60)
    out = subprocess.run(["./main"], cwd=tmp_path, check=True, timeout=60, capture_output=True, text=True).stdout
    assert out.startswith(f"{0.5 * (0 + 1 + 2):g} {0.5 * (9 + 10 + 11):g}\n1 Python layers need Python"), out
    assert "\nhook 21, made 1000\n" in out, out  # `user` arrives: 10 + the number of each of two layers; one layer made
    assert "\n1 crema_layer_host is of 8 bytes, this library reads 32; set its size" in out, out
    assert "\n0 1 crema_edge is of 4 bytes, this library reads 16; set its size" in out, out

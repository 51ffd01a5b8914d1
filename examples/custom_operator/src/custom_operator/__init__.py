"""Two operators that OneModel does not have.

``custom_operator.snake`` and ``custom_operator.huber`` are for training; deployment imports
``custom_operator.snake_kernel`` and ``custom_operator.huber_kernel``, which need no tensors.
"""

<?php

/** Gives a controller the entity that its route names, as Doctrine's bundle does. */

declare(strict_types=1);

namespace App;

use Symfony\Component\HttpFoundation\Request;
use Symfony\Component\HttpKernel\Controller\ArgumentValueResolverInterface;
use Symfony\Component\HttpKernel\Controller\ValueResolverInterface;
use Symfony\Component\HttpKernel\ControllerMetadata\ArgumentMetadata;

// The interface has another name before Symfony 6.2.
class_alias(interface_exists(ValueResolverInterface::class) ? ValueResolverInterface::class : ArgumentValueResolverInterface::class, 'App\Resolver');

final class NewsResolver implements Resolver
{
    public function supports(Request $request, ArgumentMetadata $argument): bool
    {
        return $argument->getType() === News::class;
    }

    public function resolve(Request $request, ArgumentMetadata $argument): iterable
    {
        if ($this->supports($request, $argument)) {
            yield new News((int) $request->attributes->get('id'));
        }
    }
}

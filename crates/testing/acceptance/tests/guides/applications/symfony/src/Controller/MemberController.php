<?php

/** A page that is said to be public, and is not; and pages of templates. */

declare(strict_types=1);

namespace App\Controller;

use Pagewell\Attribute\Uses;
use Symfony\Component\HttpFoundation\Response;
use Symfony\Component\Routing\Annotation\Route;
use Symfony\Component\Security\Core\Authentication\Token\Storage\TokenStorageInterface;
use Twig\Environment;

final class MemberController
{
    #[Route('/me'), Uses('news')]
    public function show(TokenStorageInterface $tokens): Response
    {
        $response = new Response('Hello ' . ($tokens->getToken()?->getUserIdentifier() ?: 'stranger'));
        return $response->setPublic()->setMaxAge(60);
    }

    #[Route('/template/{name}'), Uses('templates')]
    public function template(string $name, Environment $twig): Response
    {
        return new Response($twig->render("$name.html.twig", ['article' => ['id' => 4], 'ids' => [4, 5]]) . 'template');
    }
}
